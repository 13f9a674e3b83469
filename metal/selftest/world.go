package selftest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"slipway/engine/device"
)

// World makes the inputs of an operation from a seed, the same on each device, and keeps what must be released.
type World struct {
	Device  device.Device
	Scale   float64 // of random values; 0 means 1
	sampled bool    // a whole matrix is only multiplied where results are compared
	random  *rand.Rand
	made    []interface{ Release() }

	stored stored  // by the last operation over pages
	given  *stored // to the reference: what the device stored
	unlike string  // how that differs from what the reference would have stored
}

// NewWorld begins a world on d. Release it.
func NewWorld(d device.Device, seed uint64) *World {
	return &World{Device: d, random: rand.New(rand.NewPCG(seed, 7))}
}

// Release releases what the world's methods made.
func (w *World) Release() {
	for _, m := range w.made {
		m.Release()
	}
	w.made = nil
}

// failure carries a device's error through a recording; Do returns it.
type failure struct{ err error }

func (w *World) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Buffer is [rows, cols] of normal values.
func (w *World) Buffer(rows, cols int) device.Buffer {
	o, err := w.Device.Buffer(rows, cols)
	w.must(err)
	for i := range o.Floats() {
		o.Floats()[i] = w.value()
	}
	w.made = append(w.made, o)
	return o
}

func (w *World) value() float32 {
	scale := w.Scale
	if scale == 0 {
		scale = 1
	}
	return float32(w.random.NormFloat64() * scale)
}

// Output is [rows, cols] of NaN, so that a place that a kernel does not write is found.
func (w *World) Output(rows, cols int) device.Buffer {
	o := w.Buffer(rows, cols)
	for i := range o.Floats() {
		o.Floats()[i] = float32(math.NaN())
	}
	return o
}

// Vector is n values in [0.5, 1.5).
func (w *World) Vector(n int) device.Buffer {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(0.5 + w.random.Float64())
	}
	b, err := w.Device.Vector(v)
	w.must(err)
	w.made = append(w.made, b)
	return b
}

func float16(v float32) uint16 {
	b := math.Float32bits(v)
	e := int(b>>23&255) - 112
	if e <= 0 || e >= 31 {
		return uint16(b >> 16 & 0x8000)
	}
	return uint16(b>>16&0x8000) | uint16(e)<<10 | uint16(b>>13&1023)
}

// FloatBytes are n random values near centre in a format.
func (w *World) FloatBytes(n int, f device.Format, centre, spread float64) []byte {
	var out []byte
	for range n {
		v := float32(centre + spread*w.random.NormFloat64())
		switch f {
		case device.FormatF32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		case device.FormatF16:
			out = binary.LittleEndian.AppendUint16(out, float16(v))
		default:
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(v)>>16))
		}
	}
	return out
}

// Shape is a weight matrix.
type Shape struct {
	out, in     int
	format      device.Format
	bits, group int
	scales      device.Format
}

var formatNames = map[device.Format]string{device.FormatF32: "f32", device.FormatF16: "f16", device.FormatBF16: "bf16"}

func (s Shape) String() string {
	if s.format != device.FormatAffine {
		return fmt.Sprintf("[%d,%d] %s", s.out, s.in, formatNames[s.format])
	}
	return fmt.Sprintf("[%d,%d] %d bits by %d, scales %s", s.out, s.in, s.bits, s.group, formatNames[s.scales])
}

// Affine is a matrix of MLX's form.
func Affine(out, in, bits, group int, scales device.Format) Shape {
	return Shape{out, in, device.FormatAffine, bits, group, scales}
}

// Dense is a matrix of numbers.
func Dense(out, in int, format device.Format) Shape { return Shape{out: out, in: in, format: format} }

// Matrix uploads a random matrix.
func (w *World) Matrix(s Shape) device.Matrix {
	out, err := w.Device.Matrix(w.matrixData(s))
	w.must(err)
	return out
}

func (w *World) matrixData(s Shape) device.MatrixData {
	m := device.MatrixData{Name: s.String(), Out: s.out, In: s.in, Format: s.format, Bits: s.bits, Group: s.group,
		ScaleFormat: s.scales}
	if s.format != device.FormatAffine {
		m.Data = w.FloatBytes(s.out*s.in, s.format, 0, 0.1)
		return m
	}
	m.Data = make([]byte, 0, s.out*s.in*s.bits/8+8)
	for len(m.Data) < s.out*s.in*s.bits/8 {
		m.Data = binary.LittleEndian.AppendUint64(m.Data, w.random.Uint64())
	}
	m.Data = m.Data[:s.out*s.in*s.bits/8]
	n := s.out * s.in / s.group
	m.Scales = w.FloatBytes(n, s.scales, 0, 0.02)
	m.Biases = w.FloatBytes(n, s.scales, 0, 0.1)
	return m
}

// Pass records and runs one pass.
func (w *World) Pass(segments []device.Segment, record func(p device.Pass)) error {
	p := w.Device.NewPass()
	p.Begin(segments)
	record(p)
	return p.Run(context.Background())
}

// Run is Pass inside an operation, which ends at an error.
func (w *World) Run(segments []device.Segment, record func(p device.Pass)) {
	w.must(w.Pass(segments, record))
}

// Rows copies a buffer out, row by row.
func Rows(b device.Buffer) (out [][]float32) {
	for i := range b.Rows() {
		out = append(out, append([]float32(nil), b.Floats()[i*b.Cols():(i+1)*b.Cols()]...))
	}
	return out
}

// Operation is a recording whose results are compared with the reference's, row by row.
type Operation struct {
	Name string
	// Files are the kernel files that it uses and that have a plain variant, the most likely cause of an error first;
	// else the one file.
	Files     []string
	Tolerance float64 // of a row's largest value
	// Sizes are the sizes at the edges of a kernel's blocks or beside them, by name.
	Sizes  sizes
	record func(w *World) [][]float32
}

type sizes = map[string][]int

// Do runs the operation in w.
func (o Operation) Do(w *World) (rows [][]float32, err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			rows, err = nil, f.err
		default:
			panic(f)
		}
	}()
	return o.record(w), nil
}

// Differ returns the largest difference as a share of its row's largest value, and a sentence about the first that is
// beyond tolerance. A row narrower than a tile is measured by the largest of all rows as wide: alone, its few sums may
// cancel.
func Differ(got, want [][]float32, tolerance float64) (worst float64, what string) {
	if len(got) != len(want) {
		return math.Inf(1), fmt.Sprintf("%d rows, wanted %d", len(got), len(want))
	}
	widest := map[int]float64{}
	for _, row := range want {
		widest[len(row)] = max(widest[len(row)], Size(row))
	}
	for i := range want {
		largest := Size(want[i])
		if len(want[i]) < 32 {
			largest = widest[len(want[i])]
		}
		for j, v := range want[i] {
			g := got[i][j]
			if math.IsNaN(float64(v)) && math.IsNaN(float64(g)) {
				continue
			}
			d := math.Abs(float64(g) - float64(v))
			if d > 0 {
				worst = max(worst, d/max(largest, math.SmallestNonzeroFloat32))
			}
			if !(d <= tolerance*largest+1e-30) && what == "" {
				what = fmt.Sprintf("row %d column %d: %v, wanted %v (largest of the row %v)", i, j, g, v, largest)
			}
		}
	}
	return worst, what
}

// Size is the largest magnitude of a row's numbers.
func Size(row []float32) (largest float64) {
	for _, v := range row {
		if a := math.Abs(float64(v)); a > largest {
			largest = a
		}
	}
	return largest
}

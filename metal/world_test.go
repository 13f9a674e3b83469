//go:build unix

package metal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
)

// The same recording runs on the reference and on Metal: world makes inputs from a seed, the same on every device.
type world struct {
	t      testing.TB
	d      device.Device
	random *rand.Rand
	scale  float64 // of random values; 0 means 1
	err    error
}

func newWorld(t testing.TB, d device.Device, seed uint64) *world {
	return &world{t: t, d: d, random: rand.New(rand.NewPCG(seed, 7))}
}

// buffer is [rows, cols] of normal values.
func (w *world) buffer(rows, cols int) device.Buffer {
	o, err := w.d.Buffer(rows, cols)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range o.Floats() {
		o.Floats()[i] = w.value()
	}
	w.t.Cleanup(o.Release)
	return o
}

func (w *world) value() float32 {
	scale := w.scale
	if scale == 0 {
		scale = 1
	}
	return float32(w.random.NormFloat64() * scale)
}

// output is [rows, cols] of NaN: what a kernel leaves unwritten shows.
func (w *world) output(rows, cols int) device.Buffer {
	o := w.buffer(rows, cols)
	for i := range o.Floats() {
		o.Floats()[i] = float32(math.NaN())
	}
	return o
}

func (w *world) vector(n int) device.Buffer {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(0.5 + w.random.Float64())
	}
	b, err := w.d.Vector(v)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Release)
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

// floatBytes are n random values near centre in a format.
func (w *world) floatBytes(n int, f device.Format, centre, spread float64) []byte {
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

type shape struct {
	out, in     int
	format      device.Format
	bits, group int
	scales      device.Format
}

func (s shape) String() string {
	if s.format != device.FormatAffine {
		return fmt.Sprintf("[%d,%d] format %d", s.out, s.in, s.format)
	}
	return fmt.Sprintf("[%d,%d] %d bits by %d, scales %d", s.out, s.in, s.bits, s.group, s.scales)
}

func affine(out, in, bits, group int, scales device.Format) shape {
	return shape{out, in, device.FormatAffine, bits, group, scales}
}

func (w *world) matrix(s shape) device.Matrix {
	m := device.MatrixData{Name: s.String(), Out: s.out, In: s.in, Format: s.format, Bits: s.bits, Group: s.group, ScaleFormat: s.scales}
	if s.format != device.FormatAffine {
		m.Data = w.floatBytes(s.out*s.in, s.format, 0, 0.1)
	} else {
		m.Data = make([]byte, s.out*s.in*s.bits/8)
		for i := range m.Data {
			m.Data[i] = byte(w.random.Uint32())
		}
		n := s.out * s.in / s.group
		m.Scales = w.floatBytes(n, s.scales, 0, 0.02)
		m.Biases = w.floatBytes(n, s.scales, 0, 0.1)
	}
	out, err := w.d.Matrix(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// run records and runs one pass.
func (w *world) run(segments []device.Segment, record func(p device.Pass)) {
	p := w.d.NewPass()
	p.Begin(segments)
	record(p)
	w.err = p.Run(context.Background())
}

// rows copies a buffer out, row by row.
func rows(b device.Buffer) (out [][]float32) {
	for i := range b.Rows() {
		out = append(out, append([]float32(nil), b.Floats()[i*b.Cols():(i+1)*b.Cols()]...))
	}
	return out
}

// operation is a recording whose results are compared row by row.
type operation struct {
	name      string
	file      string // kernel file that it is about
	tolerance float64
	do        func(w *world) [][]float32
}

var devices = struct {
	sync.Mutex
	made map[bool]*metal.Device
	cpu  *cpu.Device
}{made: map[bool]*metal.Device{}}

// metals are the device with its fast kernels and one with the plain ones, kept for all tests.
func metals(t testing.TB, c fake.Configuration) map[string]*metal.Device {
	t.Helper()
	cpurun.Need(t)
	libraries, err := fake.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	devices.Lock()
	defer devices.Unlock()
	for _, plain := range []bool{false, true} {
		if devices.made[plain] == nil {
			d, err := metal.New(metal.Options{Libraries: libraries, Plain: plain})
			if err != nil {
				t.Fatal(err)
			}
			devices.made[plain] = d
		}
	}
	return map[string]*metal.Device{"fast": devices.made[false], "plain": devices.made[true]}
}

func reference() device.Device {
	devices.Lock()
	defer devices.Unlock()
	if devices.cpu == nil {
		devices.cpu = cpu.New(1)
	}
	return devices.cpu
}

// differ returns a sentence about the first row that is further from want than tolerance of the row's largest value. A row narrower than
// a tile is measured by the largest of all rows as wide: alone, its few sums may cancel.
func differ(got, want [][]float32, tolerance float64) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, wanted %d", len(got), len(want))
	}
	widest := map[int]float64{}
	for _, row := range want {
		widest[len(row)] = max(widest[len(row)], size(row))
	}
	for i := range want {
		largest := size(want[i])
		if len(want[i]) < 32 {
			largest = widest[len(want[i])]
		}
		for j, v := range want[i] {
			g := got[i][j]
			if math.IsNaN(float64(v)) && math.IsNaN(float64(g)) {
				continue
			}
			if d := math.Abs(float64(g) - float64(v)); !(d <= tolerance*largest+1e-30) {
				return fmt.Sprintf("row %d column %d: %v, wanted %v (largest of the row %v)", i, j, g, v, largest)
			}
		}
	}
	return ""
}

// size is the largest magnitude of a row's numbers.
func size(row []float32) (largest float64) {
	for _, v := range row {
		if a := math.Abs(float64(v)); a > largest {
			largest = a
		}
	}
	return largest
}

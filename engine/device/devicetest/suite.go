// Package devicetest is the contract suite of devices: every operation against its formula in float64, at odd shapes,
// over ragged segments. A device's tests call Run; what a device adds (bit equality, speed) it tests itself.
package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"slipway/engine/device"
)

// Options is what a device guarantees.
type Options struct {
	// Share is the largest error of an operation, as a share of the largest wanted value of a row.
	Share float64
	// Invariant says that a row gets the same bits whatever else is in the pass.
	Invariant bool
}

// suite is one device under test with a random source of its own.
type suite struct {
	dev device.Device
	opt Options
	r   *rand.Rand
}

// Run runs the suite on dev, which its caller closes.
func Run(t *testing.T, dev device.Device, opt Options) {
	for _, test := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"embedding and products", (*suite).products},
		{"products one row at a time", (*suite).rowsAlone},
		{"row operations", (*suite).rowwise},
		{"a NaN stays in its row", (*suite).nan},
		{"convolution over ragged segments", (*suite).conv},
		{"delta rule over ragged segments", (*suite).delta},
		{"rotation", (*suite).rotation},
		{"attention over ragged segments and pages", (*suite).attention},
		{"pages and states", (*suite).memory},
		{"pages and states out and in", (*suite).transfer},
		{"tape", (*suite).tape},
		{"cancelled before it began", (*suite).cancelled},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{dev: dev, opt: opt, r: rand.New(rand.NewPCG(11, uint64(len(test.name))))}, t)
		})
	}
}

func (s *suite) random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(s.r.NormFloat64())
	}
	return x
}

// buffer makes a buffer [rows, cols] with values; nil means NaN everywhere, so that an output that is not written
// shows.
func (s *suite) buffer(t *testing.T, rows, cols int, values []float32) device.Buffer {
	t.Helper()
	b, err := s.dev.Buffer(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	f := b.Floats()
	if values == nil {
		for i := range f {
			f[i] = float32(math.NaN())
		}
	}
	copy(f, values)
	return b
}

func (s *suite) vector(t *testing.T, values []float32) device.Buffer {
	t.Helper()
	b, err := s.dev.Vector(values)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run records and runs a pass over segments.
func (s *suite) run(t *testing.T, segments []device.Segment, record func(device.Pass)) {
	t.Helper()
	p := s.dev.NewPass()
	p.Begin(segments)
	record(p)
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// plain is one segment of n rows without state.
func plain(n int) []device.Segment { return []device.Segment{{N: n}} }

// rows compares row by row.
func (s *suite) rows(t *testing.T, what string, got []float32, want []float64, cols int) {
	t.Helper()
	if len(got) < len(want) {
		t.Fatalf("%s: %d values, wanted %d", what, len(got), len(want))
	}
	for row := 0; row*cols < len(want); row++ {
		var top, worst float64
		for i := row * cols; i < (row+1)*cols; i++ {
			top = max(top, math.Abs(want[i]))
			d := math.Abs(float64(got[i]) - want[i])
			if math.IsNaN(d) {
				d = math.Inf(1)
			}
			worst = max(worst, d)
		}
		if worst > s.opt.Share*max(top, 1e-3) {
			t.Fatalf("%s: row %d is off by %g of a largest value of %g", what, row, worst, top)
		}
	}
}

func equalBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %v, wanted %v", what, i, got[i], want[i])
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func silu(x float64) float64    { return x * sigmoid(x) }

func label(parts ...any) string { return fmt.Sprint(parts...) }

package kernels

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

func TestRowDequantises(t *testing.T) {
	for _, s := range samples() {
		m := s.matrix(t)
		row := make([]float32, s.in)
		for o := range s.out {
			m.Row(row, o)
			wantSame(t, s.name, row, s.weights[o*s.in:][:s.in])
		}
	}
}

// Any tile, any split and any instruction set must give the bits of the definition.
func TestMulIsScheduleInvariant(t *testing.T) {
	const maxRows = 15
	for _, s := range samples() {
		m := s.matrix(t)
		x := randomVector(newRand(3), maxRows*s.in)
		want := s.product(x, maxRows)
		onEach(t, func(t *testing.T) {
			for rows := 1; rows <= maxRows; rows++ {
				y := make([]float32, rows*s.out)
				m.Mul(y, s.out, x, s.in, rows, 0, s.out)
				wantSame(t, s.name, y, want[:rows*s.out])
			}
		})
	}
}

func TestMulIsSplitInvariant(t *testing.T) {
	for _, s := range []sample{affineSample(1, 83, 320, 4, 64, BF16), denseSample(2, 37, 19, F32),
		affineSample(3, 70, 64, 3, 32, F32)} {
		m := s.matrix(t)
		for _, rows := range []int{1, 2, 3, 7} {
			x := randomVector(newRand(4), rows*s.in)
			want := s.product(x, rows)
			onEach(t, func(t *testing.T) {
				if Active() == Plain && rows > 2 {
					return
				}
				for lo := 0; lo < s.out; lo += 5 {
					for hi := lo; hi <= s.out; hi += 3 {
						const mark = -12345
						y := make([]float32, rows*s.out)
						for i := range y {
							y[i] = mark
						}
						m.Mul(y, s.out, x, s.in, rows, lo, hi)
						for i, v := range y {
							if o := i % s.out; o < lo || o >= hi {
								if v != mark {
									t.Fatalf("%s: outputs %d to %d of %d rows wrote output %d", s.name, lo, hi, rows, o)
								}
							} else if !same(v, want[i]) {
								t.Fatalf("%s: outputs %d to %d of %d rows: [%d] is %v, want %v", s.name, lo, hi, rows,
									i, v, want[i])
							}
						}
					}
				}
			})
		}
	}
}

func TestMulManyRows(t *testing.T) {
	for _, s := range []sample{affineSample(1, 20, 192, 4, 64, BF16), denseSample(2, 20, 130, BF16)} {
		m := s.matrix(t)
		const rows, xPad, yPad = 2*edgeRows + 7, 3, 5
		dense := randomVector(newRand(4), rows*s.in)
		want := s.product(dense, rows)
		x := make([]float32, rows*(s.in+xPad))
		for r := range rows {
			copy(x[r*(s.in+xPad):], dense[r*s.in:][:s.in])
		}
		onEach(t, func(t *testing.T) {
			y := make([]float32, rows*(s.out+yPad))
			m.Mul(y, s.out+yPad, x, s.in+xPad, rows, 0, s.out)
			for r := range rows {
				wantSame(t, s.name, y[r*(s.out+yPad):][:s.out], want[r*s.out:][:s.out])
				wantSame(t, s.name+" padding", y[r*(s.out+yPad)+s.out:][:yPad], make([]float32, yPad))
			}
		})
	}
}

func TestNaNInputStaysInItsRow(t *testing.T) {
	for _, s := range []sample{affineSample(1, 40, 128, 4, 64, BF16), affineSample(1, 40, 128, 5, 64, BF16),
		denseSample(2, 40, 50, F32)} {
		m := s.matrix(t)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
			for _, rows := range []int{2, 4, 8} {
				x := randomVector(newRand(4), rows*s.in)
				clean := s.product(x, rows)
				x[s.in+s.in/2] = bad
				onEach(t, func(t *testing.T) {
					y := make([]float32, rows*s.out)
					m.Mul(y, s.out, x, s.in, rows, 0, s.out)
					for r := range rows {
						if r != 1 {
							wantSame(t, s.name, y[r*s.out:][:s.out], clean[r*s.out:][:s.out])
							continue
						}
						for _, v := range y[r*s.out:][:s.out] {
							if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
								t.Fatalf("%s: %v in the input gives %v", s.name, bad, v)
							}
						}
					}
				})
			}
		}
	}
}

func TestSplitCoversOutputs(t *testing.T) {
	for _, out := range []int{1, 16, 17, 83, 320} {
		m := denseSample(1, out, 1, F32).matrix(t)
		for parts := 1; parts <= 8; parts++ {
			at := 0
			for i := range parts {
				lo, hi := m.Split(parts, i)
				if lo != at || hi < lo || lo%OutUnit != 0 && lo != out {
					t.Fatalf("%d outputs, part %d of %d: %d to %d, the one before ends at %d", out, i, parts, lo, hi,
						at)
				}
				at = hi
			}
			if at != out {
				t.Fatalf("%d outputs in %d parts end at %d", out, parts, at)
			}
		}
	}
}

func TestPackRefuses(t *testing.T) {
	good := Affine{Out: 2, In: 64, Bits: 4, Group: 64, Codes: make([]byte, 64), Scales: make([]byte, 4),
		Biases: make([]byte, 4), ScaleType: BF16}
	if _, err := PackAffine(good); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, says string
		change     func(*Affine)
	}{
		{"7 bits", "7 bits", func(a *Affine) { a.Bits = 7 }},
		{"group of 16", "groups of 16", func(a *Affine) { a.Group = 16 }},
		{"inputs not whole groups", "multiple of the group", func(a *Affine) { a.In = 65 }},
		{"no outputs", "positive", func(a *Affine) { a.Out = 0 }},
		{"codes cut short", "63 bytes of codes, wants 64", func(a *Affine) { a.Codes = a.Codes[1:] }},
		{"scales too long", "scales, wants 4", func(a *Affine) { a.Scales = make([]byte, 8) }},
		{"biases of another type", "biases, wants 8", func(a *Affine) { a.ScaleType, a.Scales = F32, make([]byte, 8) }},
	} {
		a := good
		row.change(&a)
		if _, err := PackAffine(a); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: error %v, want one that says %q", row.name, err, row.says)
		}
	}
	if _, err := PackDense(2, 3, make([]byte, 13), BF16); err == nil || !strings.Contains(err.Error(), "wants 12") {
		t.Errorf("dense bytes: %v", err)
	}
}

// A tile that reads inputs or weights past their end, or writes outputs there.
func TestMulStaysInside(t *testing.T) {
	for _, s := range samples() {
		m := s.matrix(t)
		words := guarded(t, len(m.words))
		for i, w := range m.words {
			words[i] = math.Float32frombits(w)
		}
		m.words = unsafe.Slice((*uint32)(unsafe.Pointer(&words[0])), len(words))
		for _, rows := range []int{1, 2, 3, 4, 5, 6, 7, 13} {
			x, y := guarded(t, rows*s.in), guarded(t, rows*s.out)
			copy(x, randomVector(newRand(3), rows*s.in))
			want := s.product(x, rows)
			onEach(t, func(t *testing.T) {
				m.Mul(y, s.out, x, s.in, rows, 0, s.out)
				wantSame(t, s.name, y, want)
			})
		}
	}
}

// Decode and prefill must not allocate once warm.
func TestMulAllocatesNothing(t *testing.T) {
	for _, s := range []sample{affineSample(1, 83, 320, 4, 64, BF16), affineSample(1, 83, 320, 3, 64, BF16),
		denseSample(2, 37, 19, F32)} {
		m := s.matrix(t)
		x, y := make([]float32, 9*s.in), make([]float32, 9*s.out)
		onEach(t, func(t *testing.T) {
			for _, rows := range []int{1, 9} {
				if n := testing.AllocsPerRun(10, func() { m.Mul(y, s.out, x, s.in, rows, 0, s.out) }); n != 0 {
					t.Errorf("%s: %v allocations with %d rows", s.name, n, rows)
				}
			}
		})
	}
}

// Workers that share a matrix and the table of scratch memory: a scratch given to two would mix their weights.
func TestMulFromManyWorkers(t *testing.T) {
	s := affineSample(1, 203, 320, 5, 64, BF16)
	m := s.matrix(t)
	const rows, workers, rounds = 9, 8, 20
	x := randomVector(newRand(4), rows*s.in)
	want := s.product(x, rows)
	for range rounds {
		y := make([]float32, rows*s.out)
		share(workers, func(i int) {
			lo, hi := s.out*i/workers, s.out*(i+1)/workers
			m.Mul(y, s.out, x, s.in, rows, lo, hi)
		})
		wantSame(t, s.name, y, want)
	}
}

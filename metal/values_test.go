//go:build unix

package metal_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

func TestValuesFarFromOneComeOutOtherwise(t *testing.T) {
	for _, scale := range []struct {
		name string
		of   float64
	}{{"1e4", 1e4}, {"1e-3", 1e-3}, {"denormal", 1e-40}} {
		for kind, d := range metals(t, fake.Configuration{Seed: 9}) {
			for i, o := range selftest.Few() {
				t.Run(scale.name+"/"+kind+"/"+o.Name, func(t *testing.T) {
					want, got := newWorld(t, reference(), uint64(i)), newWorld(t, d, uint64(i))
					want.Scale, got.Scale = scale.of, scale.of
					_, what, err := selftest.Compare(got, want, o)
					if err != nil {
						// A value of 1e4 at four standard deviations leaves f16: the device must say so, not answer.
						var beyond *metal.RangeError
						if scale.of < 1e4 || !errors.As(err, &beyond) {
							t.Fatal(err)
						}
						return
					}
					if what != "" { // a GPU may flush denormals: what is below 1e-30 counts as zero
						t.Error(what)
					}
				})
			}
		}
	}
}

// A NaN in one row of the input may show in that row and, where rows see earlier ones, in later rows of its segment: nowhere else.
func TestNaNThatSpreadsToOtherRows(t *testing.T) {
	const cols, spoilt = 64, 5
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		run  func(w *selftest.World, spoil bool) (out device.Buffer, n int)
	}{
		{"norm", func(w *selftest.World, spoil bool) (device.Buffer, int) {
			x, weight, dst := w.Buffer(12, cols), w.Vector(cols), w.Output(12, cols)
			spoilRow(x, spoilt, spoil, nan)
			w.Run(selftest.Stateless(12), func(p device.Pass) { p.RMSNorm(dst, x, weight, 1e-6, 12, 0) })
			return dst, 12
		}},
		{"linear of 7 rows", func(w *selftest.World, spoil bool) (device.Buffer, int) {
			return spoiltLinear(w, 7, spoilt, spoil, nan)
		}},
		{"linear of 40 rows", func(w *selftest.World, spoil bool) (device.Buffer, int) {
			return spoiltLinear(w, 40, spoilt, spoil, nan)
		}},
	} {
		for kind, d := range metals(t, fake.Configuration{Seed: 3}) {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				clean, n := c.run(newWorld(t, d, 1), false)
				dirty, _ := c.run(newWorld(t, d, 1), true)
				a, b := selftest.Rows(clean), selftest.Rows(dirty)
				for i := range n {
					if i != spoilt && differ(b[i:i+1], a[i:i+1], 0) != "" {
						t.Errorf("row %d is not what it was", i)
					}
				}
				if !math.IsNaN(float64(b[spoilt][0])) {
					t.Error("the spoilt row hides it")
				}
			})
		}
	}
}

func spoilRow(x device.Buffer, row int, spoil bool, v float32) {
	if spoil {
		x.Floats()[row*x.Cols()+1] = v
	}
}

func spoiltLinear(w *selftest.World, n, row int, spoil bool, v float32) (device.Buffer, int) {
	x, m, dst := w.Buffer(n, 64), w.Matrix(selftest.Affine(33, 64, 4, 32, device.FormatF16)), w.Output(n, 33)
	spoilRow(x, row, spoil, v)
	w.Run(selftest.Stateless(n), func(p device.Pass) { p.Linear(x, []device.Product{{W: m, Dst: dst}}, n) })
	return dst, n
}

// Value and key rows with a NaN: rows before it in the same tile do not see it, other segments never.
func TestNaNKeyThatEarlierRowsFeel(t *testing.T) {
	const n, spoilt, dim = 20, 9, 64
	attend := func(w *selftest.World, format device.KVFormat, spoil bool) [][]float32 {
		kv, err := w.Device.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: dim, Pages: 2, Format: format})
		if err != nil {
			t.Fatal(err)
		}
		qGate, k, v, table := w.Buffer(2*n, 4*dim), w.Buffer(2*n, dim), w.Buffer(2*n, dim), w.Output(2*n, 8)
		v2 := w.Buffer(1, dim)
		q, dst, qNorm, kNorm := w.Output(2*n, 2*dim), w.Output(2*n, 2*dim), w.Vector(dim), w.Vector(dim)
		spoilRow(v, spoilt, spoil, float32(math.NaN()))
		segments := []device.Segment{{N: n, Pages: []int32{0}}, {Row: n, N: n, Pages: []int32{1}}}
		err = w.Pass(segments, func(p device.Pass) {
			p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
			p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: qNorm, KNorm: kNorm, Rotation: table, KV: kv, Eps: 1e-6})
			p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv})
		})
		if err != nil {
			t.Fatal(err)
		}
		out := selftest.Rows(dst)
		// A reply's next tokens, three of the spoilt sequence and three of the other, go by another kernel than the prompt.
		for row, n := range []int{n, n} {
			for i := range 3 {
				one := []device.Segment{{N: 1, Start: n + i, Pages: []int32{int32(row)}}}
				err = w.Pass(one, func(p device.Pass) {
					p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
					p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: v2, V: v2, QNorm: qNorm, KNorm: kNorm, Rotation: table, KV: kv, Eps: 1e-6})
					p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv})
				})
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, selftest.Rows(dst)[0])
			}
		}
		return out
	}
	for kind, d := range metals(t, fake.Configuration{Seed: 3}) {
		for _, format := range []device.KVFormat{device.KVNative, device.KVQ8} {
			t.Run(fmt.Sprint(kind, ", pages of format ", format), func(t *testing.T) {
				clean, dirty := attend(newWorld(t, d, 1), format, false), attend(newWorld(t, d, 1), format, true)
				for i := range clean {
					sees := i >= spoilt && i < n || i >= 2*n && i < 2*n+3
					if !sees && differ(dirty[i:i+1], clean[i:i+1], 0) != "" {
						t.Errorf("row %d is not what it was", i)
					}
					if sees && !math.IsNaN(float64(dirty[i][1])) {
						t.Errorf("row %d sees the key and hides it", i)
					}
				}
			})
		}
	}
}

// A NaN in one token of a prompt shows in that token's outputs and in later ones, in every head that reads it: nowhere else.
func TestNaNTokenThatEarlierTokensOfItsChunkFeel(t *testing.T) {
	const n, spoilt = 45, 21 // the second chunk of 16
	g := selftest.StateOf(1, 2, 32, 16)
	advance := func(w *selftest.World, column int) [][]float32 {
		segments, total := w.SegmentsOf(g, n, 20)
		qkv, a, b, aLog := w.Buffer(total, g.ConvChannels), w.Buffer(total, 2), w.Buffer(total, 2), w.Vector(2)
		dst := w.Output(total, 32)
		if column >= 0 {
			qkv.Floats()[spoilt*g.ConvChannels+column] = float32(math.NaN())
		}
		w.Run(segments, func(p device.Pass) {
			p.DeltaRule(device.DeltaRule{Dst: dst, QKV: qkv, A: a, B: b, ALog: aLog, DTBias: aLog, Layer: 1})
		})
		return selftest.States(selftest.Rows(dst), segments, 1)
	}
	for kind, d := range metals(t, fake.Configuration{Seed: 3}) {
		for name, column := range map[string]int{"query": 3, "key": 35, "value": 64 + 16 + 5} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				clean, dirty := advance(newWorld(t, d, 1), -1), advance(newWorld(t, d, 1), column)
				for i := range n + 20 {
					feels := i == spoilt || i > spoilt && i < n && name != "query"
					if !feels && differ(dirty[i:i+1], clean[i:i+1], 0) != "" {
						t.Errorf("row %d is not what it was", i)
					}
					at := 5 // of the first value head, or of the second
					if name == "value" {
						at = 16 + 5
					}
					if feels && !math.IsNaN(float64(dirty[i][at])) {
						t.Errorf("row %d hides it: %v", i, dirty[i][at])
					}
				}
				if got := math.IsNaN(float64(dirty[n+20][(16+5)*32])); got != (name != "query") {
					t.Errorf("the state holds a NaN: %v", got)
				}
				if what := differ(dirty[n+22:], clean[n+22:], 0); what != "" {
					t.Errorf("the other sequence's state: %s", what)
				}
			})
		}
	}
}

func TestActivationBeyondF16ThatIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  metal.Options
		n    int
		fits bool
	}{
		{"f16 operands", metal.Options{}, 40, false},
		{"bf16 operands", metal.Options{BF16: true}, 40, true},
		{"decode keeps f32", metal.Options{}, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, fake.Configuration{Seed: 1}, c.opt)
			run := func(w *selftest.World) ([][]float32, error) {
				x, m, dst := w.Buffer(c.n, 64), w.Matrix(selftest.Affine(64, 64, 4, 32, device.FormatF16)), w.Output(c.n, 64)
				x.Floats()[70] = 70000
				err := w.Pass(selftest.Stateless(c.n), func(p device.Pass) { p.Linear(x, []device.Product{{W: m, Dst: dst}}, c.n) })
				return selftest.Rows(dst), err
			}
			got, err := run(newWorld(t, d, 1))
			var beyond *metal.RangeError
			if !c.fits {
				if !errors.As(err, &beyond) {
					t.Fatalf("%v, wanted a RangeError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, err := run(newWorld(t, reference(), 1))
			if err != nil {
				t.Fatal(err)
			}
			if what := differ(got, want, 1.6e-2); what != "" {
				t.Error(what)
			}
		})
	}
}

// Twenty orders of fibers, threadgroups and dispatches at every tile shape: the same bits every time.
func TestResultsThatDependOnTheOrderOfThreads(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for i, o := range slices.Concat(selftest.Few(), selftest.TileShapes()) {
			t.Run(fmt.Sprintf("plain %v/%s", plain, o.Name), func(t *testing.T) {
				d := open(t, fake.Configuration{}, metal.Options{Plain: plain}) // of its own: matrices go when it does
				var first [][]float32
				for seed := range uint64(20) {
					fake.Configure(fake.Configuration{Seed: seed, Threads: 1 + int(seed%2)})
					w := newWorld(t, d, uint64(i))
					got, err := o.Do(w)
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = got
					}
					if what := differ(got, first, 0); what != "" {
						t.Fatalf("seed %d: %s", seed, what)
					}
				}
			})
		}
	}
}

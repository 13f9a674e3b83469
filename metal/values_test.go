//go:build unix

package metal_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

func TestValuesFarFromOneAgreeWithTheReference(t *testing.T) {
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
						t.Fatal(err)
					}
					if what != "" { // a GPU may flush denormals: what is below 1e-30 counts as zero
						t.Error(what)
					}
				})
			}
		}
	}
}

func TestActivationBeyondF16IsAnError(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  metal.Options
		n    int
		fits bool
	}{
		{"f16 operands", metal.Options{}, 40, false},
		{"bf16 operands", metal.Options{BF16: true}, 40, true},
		{"several rows by matrices", metal.Options{}, 4, false},
		{"several rows where operands are bf16", metal.Options{BF16: true}, 4, true},
		{"two rows keep f32", metal.Options{}, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, fake.Configuration{Seed: 1}, c.opt)
			run := func(w *selftest.World) ([][]float32, error) {
				x, m, dst := w.Buffer(c.n, 64), w.Matrix(selftest.Affine(64, 64, 4, 64, device.FormatF16)),
					w.Output(c.n, 64)
				x.Floats()[70] = 70000
				err := w.Pass(selftest.Stateless(c.n), func(p device.Pass) {
					p.Linear(x, []device.Product{{W: m, Dst: dst}}, c.n)
				})
				return selftest.Rows(dst), err
			}
			got, err := run(newWorld(t, d, 1))
			var beyond *device.RangeError
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

// Four orders of fibers, threadgroups and dispatches at every tile shape, and twenty in make soak: the same bits every
// time.
func TestResultsDoNotDependOnTheOrderOfThreads(t *testing.T) {
	all := slices.Concat(selftest.Few(), selftest.TileShapes())
	const some = 20 // operations of one device: it keeps every matrix until it is closed
	for _, plain := range []bool{false, true} {
		for from := 0; from < len(all); from += some {
			t.Run(fmt.Sprintf("plain %v/%d", plain, from/some), func(t *testing.T) {
				d := open(t, fake.Configuration{}, metal.Options{Plain: plain})
				for i, o := range all[from:min(from+some, len(all))] {
					if what := otherwise(d, o, uint64(from+i)); what != "" {
						t.Errorf("%s: %s", o.Name, what)
					}
				}
			})
		}
	}
}

// otherwise runs an operation in several orders and names the first that gave other bits.
func otherwise(d *metal.Device, o selftest.Operation, seed uint64) string {
	var first [][]float32
	orders := uint64(4)
	if os.Getenv("SLIPWAY_SOAK") != "" {
		orders = 20
	}
	for order := range orders {
		fake.Configure(fake.Configuration{Seed: order, Threads: 1 + int(order%2)})
		w := selftest.NewWorld(d, seed)
		got, err := o.Do(w)
		w.Release()
		if err != nil {
			return err.Error()
		}
		if first == nil {
			first = got
		}
		if what := differ(got, first, 0); what != "" {
			return fmt.Sprintf("seed %d: %s", order, what)
		}
	}
	return ""
}

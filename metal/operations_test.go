//go:build unix

package metal_test

import (
	"slices"
	"testing"

	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

func TestKernelsAgreeWithTheReference(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []selftest.Operation
	}{{"few", selftest.Few()}, {"tile shapes", selftest.TileShapes()}, {"largest of the 27B", selftest.Largest27B()}} {
		t.Run(c.name, func(t *testing.T) {
			for kind, d := range metals(t, fake.Configuration{Seed: 5, Threads: 2}) {
				for i, o := range c.all {
					t.Run(kind+"/"+o.Name, func(t *testing.T) {
						if what := check(o, d, uint64(i)); what != "" {
							t.Error(what)
						}
					})
				}
				if list := d.Degraded(); len(list) > 0 {
					t.Error(list)
				}
			}
		})
	}
}

// Operands of bf16 have 8 bits.
func TestBF16ProductsAgreeWithTheReference(t *testing.T) {
	d := open(t, fake.Configuration{Seed: 5, Threads: 2}, metal.Options{BF16: true})
	n := 0
	for i, o := range slices.Concat(selftest.TileShapes(), selftest.Largest27B()) {
		if o.Files[0] != "linear_gemm" {
			continue
		}
		n++
		o.Tolerance = 1.6e-2
		if what := check(o, d, uint64(i)); what != "" {
			t.Errorf("%s: %s", o.Name, what)
		}
	}
	if n < 50 {
		t.Errorf("only %d products", n)
	}
}

//go:build unix

package metal_test

import (
	"testing"

	"slipway/metal/fake"
	"slipway/metal/selftest"
)

func TestKernelThatDiffersFromTheReference(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []selftest.Operation
	}{{"tile shapes", selftest.TileShapes()}, {"largest of the 27B", selftest.Largest27B()}} {
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

//go:build unix

package metal_test

import (
	"math"
	"sort"
	"testing"

	"slipway/engine/device"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

func TestLargestValuesInAnotherOrder(t *testing.T) {
	d := metals(t, fake.Configuration{Seed: 4})["fast"]
	for _, c := range []struct{ rows, cols, k int }{{1, 1, 1}, {3, 31, 4}, {2, 255, 3}, {1, 256, 1}, {2, 257, 257}, {1, 5000, 20}} {
		w := newWorld(t, d, uint64(c.cols))
		src, values, ids := w.Buffer(c.rows, c.cols), w.Output(c.rows, c.k), w.Output(c.rows, c.k)
		x := src.Floats()
		for i := range x {
			x[i] = float32(math.Round(float64(x[i]) * 4)) // many equal ones
		}
		if c.cols > 200 {
			x[7], x[9] = float32(math.NaN()), float32(math.Inf(-1))
		}
		w.Run(selftest.Stateless(c.rows), func(p device.Pass) { p.(device.SelectingPass).TopK(values, ids, src, c.rows) })
		for r := range c.rows {
			row := x[r*c.cols : (r+1)*c.cols]
			order := make([]int, 0, c.cols)
			for i, v := range row {
				if v == v {
					order = append(order, i)
				}
			}
			sort.SliceStable(order, func(i, j int) bool { return row[order[i]] > row[order[j]] })
			for n := range c.k {
				v, id := values.Floats()[r*c.k+n], ids.Floats()[r*c.k+n]
				if n >= len(order) {
					if v == v || id != -1 {
						t.Errorf("%v: %v at %v where nothing is left", c, v, id)
					}
					continue
				}
				if int(id) != order[n] || v != row[order[n]] {
					t.Fatalf("%v: row %d, place %d: %v at %v, wanted %v at %d", c, r, n, v, id, row[order[n]], order[n])
				}
			}
		}
	}
}

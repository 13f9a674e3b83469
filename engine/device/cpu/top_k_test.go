package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"slipway/engine/device"
)

func TestLargestValuesAreInStableOrder(t *testing.T) {
	d := New(2)
	defer d.Close()
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ rows, cols, k int }{{1, 1, 1}, {3, 31, 4}, {2, 257, 257}, {5, 5000, 20}, {1, 9000, 1}} {
		src, values, ids := newBuffer(c.rows, c.cols), newBuffer(c.rows, c.k), newBuffer(c.rows, c.k)
		for i := range src.f {
			src.f[i] = float32(math.Round(r.NormFloat64() * 4)) // many equal ones
			if r.IntN(9) == 0 {
				src.f[i] = float32(math.Inf(1 - 2*r.IntN(2)))
			}
		}
		p := d.NewPass()
		p.Begin([]device.Segment{{N: c.rows}})
		p.TopK(values, ids, src, c.rows)
		if err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		for row := range c.rows {
			x := src.row(row)
			var order []int
			for i, v := range x {
				if v == v {
					order = append(order, i)
				}
			}
			sort.SliceStable(order, func(i, j int) bool { return x[order[i]] > x[order[j]] })
			for n := range c.k {
				v, id := values.row(row)[n], int(ids.row(row)[n])
				if n < len(order) && (id != order[n] || v != x[order[n]]) || n >= len(order) && (v == v || id != -1) {
					t.Fatalf("%+v: row %d, place %d: %v at %d", c, row, n, v, id)
				}
			}
		}
	}
}

func TestRowWithANaNHasNoLargest(t *testing.T) {
	d := New(1)
	defer d.Close()
	nan := float32(math.NaN())
	src, values, ids := newBuffer(4, 3), newBuffer(4, 2), newBuffer(4, 2)
	copy(src.f, []float32{nan, 1, 2, 3, 2, nan, 3, nan, float32(math.Inf(1)), 1, 2, 3})
	p := d.NewPass()
	p.Begin([]device.Segment{{N: 4}})
	p.TopK(values, ids, src, 4)
	if err := p.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for row := range 4 {
		v, id := values.row(row), ids.row(row)
		if refused := v[0] != v[0] && v[1] != v[1] && id[0] == -1 && id[1] == -1; refused != (row < 3) {
			t.Errorf("row %d: %v at %v", row, v, id)
		}
	}
}

// A row of the 27B's logits; beside BenchmarkDistribution of engine/sample, which looks at the same row.
func BenchmarkTopK(b *testing.B) {
	d := New(1)
	defer d.Close()
	r := rand.New(rand.NewPCG(3, 4))
	src := newBuffer(1, 248_320)
	for i := range src.f {
		src.f[i] = float32(r.Float64()*20 - 10)
	}
	for _, k := range []int{1, 20} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			values, ids, p := newBuffer(1, k), newBuffer(1, k), d.NewPass()
			for b.Loop() {
				p.Begin([]device.Segment{{N: 1}})
				p.TopK(values, ids, src, 1)
				p.Run(context.Background())
			}
		})
	}
}

//go:build unix

package metal_test

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

// chosen runs TopK over rows of cols and returns it with the rows.
func chosen(w *selftest.World, rows, cols, k int, change func(x []float32)) (x, values, ids [][]float32) {
	src, v, id := w.Buffer(rows, cols), w.Output(rows, k), w.Output(rows, k)
	change(src.Floats())
	w.Run(selftest.Stateless(rows), func(p device.Pass) { p.TopK(v, id, src, rows) })
	return selftest.Rows(src), selftest.Rows(v), selftest.Rows(id)
}

// Many equal values, both zeros, denormals and infinities: the order and every bit are a stable sort's.
func TestLargestValuesAreInStableOrder(t *testing.T) {
	for kind, d := range metals(t, fake.Configuration{Seed: 4}) {
		for _, c := range []struct{ rows, cols, k int }{{1, 1, 1}, {3, 31, 4}, {2, 255, 3}, {1, 256, 1}, {2, 257, 257},
			{1, 5000, 20}, {2, 4097, 32}, {1, 66000, 32}, {1, 270_000, 2}} {
			t.Run(fmt.Sprint(kind, c), func(t *testing.T) {
				x, values, ids := chosen(newWorld(t, d, uint64(c.cols)), c.rows, c.cols, c.k, func(x []float32) {
					for i := range x {
						x[i] = float32(math.Round(float64(x[i])*4)) * float32(1-i%2*2) * []float32{0, 1e-40, 1}[i%3]
						if i%97 == 96 {
							x[i] = float32(math.Inf(i % 2 * -1))
						}
					}
				})
				for r, row := range x {
					order := make([]int, c.cols)
					for i := range order {
						order[i] = i
					}
					sort.SliceStable(order, func(i, j int) bool { return row[order[i]] > row[order[j]] })
					for n, id := range order[:c.k] {
						if int(ids[r][n]) != id || math.Float32bits(values[r][n]) != math.Float32bits(row[id]) {
							t.Fatalf("row %d, place %d: %v at %v, wanted %v at %d", r, n, values[r][n], ids[r][n],
								row[id], id)
						}
					}
				}
			})
		}
	}
}

// One NaN, in the first place, the last, in another slice than the largest, or of either sign: its row has no largest
// value, the other rows have.
func TestRowWithANaNHasNoLargest(t *testing.T) {
	all := metals(t, fake.Configuration{Seed: 4})
	for kind, d := range map[string]device.Device{"fast": all["fast"], "plain": all["plain"],
		"reference": reference()} {
		for _, k := range []int{1, 20, 40} {
			for _, at := range []int{0, 31, 2047, 2048, 4999} {
				x, values, ids := chosen(newWorld(t, d, 3), 3, 5000, k, func(x []float32) {
					x[5000+77] = float32(math.Inf(1))
					x[5000+at] = math.Float32frombits(0x7f800001 | uint32(at%2)<<31)
				})
				for n := range k {
					if values[1][n] == values[1][n] || ids[1][n] != -1 {
						t.Errorf("%s, k %d: a NaN at %d: place %d is %v at %v", kind, k, at, n, values[1][n], ids[1][n])
					}
				}
				for _, r := range []int{0, 2} {
					if id := ids[r][0]; id < 0 || values[r][0] != slices.Max(x[r]) {
						t.Errorf("%s, k %d: row %d beside it: %v at %v", kind, k, r, values[r][0], id)
					}
				}
			}
		}
	}
}

// Where top_k, or either of its kernels, cannot be made, its plain variant gives the same result.
func TestLargestValuesWithoutTheFastKernel(t *testing.T) {
	for _, broken := range []string{"kernel void top_k_slices", "kernel void top_k_merge"} {
		text := kernels.Source("top_k")
		d := open(t, fake.Configuration{Seed: 4}, metal.Options{
			Source: with("top_k", strings.Replace(text, broken, broken+"_else", 1))})
		x, values, _ := chosen(newWorld(t, d, 3), 1, 3000, 20, func([]float32) {})
		if values[0][0] != slices.Max(x[0]) || len(d.Degraded()) != 1 {
			t.Errorf("without %s: %v, degraded %q", broken, values[0], d.Degraded())
		}
	}
}

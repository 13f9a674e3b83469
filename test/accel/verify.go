//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"
)

// product is a dispatch of products with how often the 27B runs it in a pass of the trunk, and in a step of its MTP
// head.
type product struct {
	testCase
	trunk, head int
}

// verifiedRows are the rows of a pass that are measured: one token, and proposals of 1 to 7.
var verifiedRows = []int{1, 2, 3, 4, 5, 6, 8}

// products are all matrix products of a pass of the 27B over rows: 48 linear layers and 16 with attention, all with an
// MLP, and the logits of each row.
func products(rows int) (all []product) {
	add := func(trunk, head int, c testCase) {
		c.name = fmt.Sprintf("verify %d rows: %s", rows, c.name)
		all = append(all, product{c, trunk, head})
	}
	add(48, 0, projections("qkv, z, b and a", rows, 10240, 6144, 48, 48))
	add(16, 1, projections("q with gate, k and v", rows, 12288, 1024, 1024))
	add(64, 1, gemv("out of attention or recurrence", rows, 1, 0, 5120, 6144))
	add(64, 1, gemv("MLP gate and up with SwiGLU, one dispatch", rows, 2, 1, 17408, 5120))
	add(64, 1, gemv("MLP down", rows, 1, 0, 5120, 17408))
	add(1, 1, gemv("logits", rows, 1, 0, logitCols, 5120))
	add(0, 1, gemv("MTP head's two inputs", rows, 1, 0, 5120, 10240))
	return all
}

// verify prints what the products of a verified pass take beside those of one row, and what a draft gains by that at
// some rates of acceptance. Attention, recurrence and norms are left out: they are a small part at short contexts, and
// they are the same in both.
func verify(dir string) error {
	d, err := openDriver()
	if err != nil {
		return err
	}
	trunk, step := map[int]float64{}, 0.0
	for _, rows := range verifiedRows {
		for _, p := range products(rows) {
			seconds := d.rate(dir, p.testCase).Seconds
			trunk[rows] += float64(p.trunk) * seconds
			if rows == 1 {
				step += float64(p.head) * seconds
			}
		}
		fmt.Printf("%d rows: %8.2f ms, %.2f times one row\n", rows, trunk[rows]*1e3, trunk[rows]/trunk[1])
	}
	fmt.Printf("a step of the MTP head: %.2f ms, %.3f of a pass\n", step*1e3, step/trunk[1])
	fmt.Println(strings.Join([]string{"rows", "acceptance", "tokens a pass", "gain with MTP", "gain of a free draft"},
		" | "))
	for _, rows := range verifiedRows[1:] {
		for _, a := range []float64{0.6, 0.8, 0.9} {
			tokens := (1 - math.Pow(a, float64(rows))) / (1 - a)
			mtp := tokens * trunk[1] / (trunk[rows] + float64(rows-1)*step)
			fmt.Printf("%d | %.1f | %.2f | %.2f | %.2f\n", rows, a, tokens, mtp, tokens*trunk[1]/trunk[rows])
		}
	}
	return nil
}

//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"

	"slipway/metal/kernels"
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

// matrixProducts are the same by linear_rows, with the operands that it needs of each input.
func matrixProducts(rows int) (all []product) {
	add := func(trunk, head int, name string, gated bool, in int, outs ...int) {
		all = append(all, product{byMatrices(fmt.Sprintf("matrices, %d rows: %s", rows, name), rows, gated, in,
			outs...),
			trunk, head}, product{operands(rows, in), trunk, head})
	}
	add(48, 0, "qkv, z, b and a", false, 5120, 10240, 6144, 48, 48)
	add(16, 1, "q with gate, k and v", false, 5120, 12288, 1024, 1024)
	add(64, 1, "out of attention or recurrence", false, 6144, 5120)
	add(64, 1, "MLP gate and up with SwiGLU", true, 5120, 17408, 17408)
	add(64, 1, "MLP down", false, 17408, 5120)
	add(1, 1, "logits", false, 5120, logitCols)
	return all
}

// operands is rows_half, which runs before linear_rows.
func operands(rows, in int) testCase {
	return testCase{name: fmt.Sprintf("matrices, %d rows: operands of [%d,%d]", rows, rows, in), file: "linear_rows",
		kernel: "rows_half", constants: []uint32{2, 64, uint32(rows), 0}, bytes: 4 * rows * in,
		copies: min(rotated/(4*rows*in)+2, 200), grid: [3]int{in / 64, 1, 1}, group: [3]int{256, 1, 1},
		make: func(d *driver) (b [31]uintptr) {
			b[0] = put(d, []kernels.LinearRowsParams{{In: uint32(in)}})
			b[1], b[2], b[3] = d.alloc(8*2*in, 0), d.alloc(in/64*8*8, 0), d.alloc(4*rows*in, 0x3f800000)
			b[4] = d.alloc(4, 0)
			return b
		}}
}

// byMatrices is up to four products of one input, or gate and up, by linear_rows.
func byMatrices(name string, rows int, gated bool, in int, outs ...int) testCase {
	one, tiles := 0, 0
	const never = 1 << 31
	p := kernels.LinearRowsParams{In: uint32(in), Tile1: never, Tile2: never, Tile3: never}
	to, begins := []*uint32{&p.Out0, &p.Out1, &p.Out2, &p.Out3}, []*uint32{new(uint32), &p.Tile1, &p.Tile2, &p.Tile3}
	for q, out := range outs {
		*to[q] = uint32(out)
		one += out*in/2 + out*in/64*4
		switch {
		case gated && q == 0:
			tiles = (out + 7) / 8
		case !gated:
			*begins[q] = uint32(tiles)
			tiles += (out + 15) / 16
		}
	}
	g := uint32(0)
	if gated {
		g = 1
	}
	return testCase{name: name, file: "linear_rows", kernel: "linear_rows", constants: []uint32{2, 64, uint32(rows), g},
		bytes: one, copies: rotated/one + 2, grid: [3]int{tiles, 1, 1}, group: [3]int{256, 1, 1},
		make: func(d *driver) (b [31]uintptr) {
			b[0], b[5], b[18] = put(d, []kernels.LinearRowsParams{p}), d.alloc(8*2*in, 0), d.alloc(in/64*8*8, 0)
			for q := range 4 {
				b[1+q], b[6+q], b[10+q], b[14+q] = b[1], b[6], b[10], b[14]
				if q < len(outs) {
					codes, scales := outs[q]*in/2, outs[q]*in/64*2
					b[1+q], b[6+q], b[10+q], b[14+q] = d.alloc(4*rows*outs[q], 0), d.fill(codes, noise()),
						d.alloc(scales, 0x3c003c00), d.alloc(scales, 0xbd00bd00)
				}
			}
			return b
		}}
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
	fmt.Println("rows | by linear_gemv | of one row | by linear_rows | of one row")
	for _, rows := range verifiedRows {
		vectors, head := d.total(dir, products(rows))
		trunk[rows] = vectors
		if rows == 1 {
			step = head
			fmt.Printf("1 | %.2f ms | 1 | |\n", vectors*1e3)
			continue
		}
		matrices, _ := d.total(dir, matrixProducts(rows))
		if rows >= 3 { // as the host chooses
			trunk[rows] = matrices
		}
		fmt.Printf("%d | %.2f ms | %.2f | %.2f ms | %.2f\n", rows, vectors*1e3, vectors/trunk[1], matrices*1e3,
			matrices/trunk[1])
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

// total is the time of all products of a pass, and of a step of the MTP head, one dispatch after another.
func (d *driver) total(dir string, all []product) (trunk, head float64) {
	for _, p := range all {
		seconds := d.rate(dir, p.testCase).Seconds
		trunk += float64(p.trunk) * seconds
		head += float64(p.head) * seconds
	}
	return trunk, head
}

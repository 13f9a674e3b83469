//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"

	"slipway/metal/kernels"
)

// logitCols is the 27B's vocabulary, with the rows that pad it.
const logitCols = 248320

// rotated is the least that a measurement reads before it reads the same bytes again: caches hold less.
const rotated = 500 << 20

// rate is one measurement: what was read, against what memory can give in the same run.
type rate struct {
	Name      string  `json:"name"`
	Bytes     int     `json:"bytes"`
	Seconds   float64 `json:"seconds"`
	GBs       float64 `json:"gigabytes_per_second"`
	Share     float64 `json:"share_of_ceiling"`
	Registers int     `json:"registers"`
}

// testCase is a kernel with its function constants fixed, as Metal's compiler fixes them.
type testCase struct {
	name, file, kernel string
	text               string // of a source that is not one of the kernels
	constants          []uint32
	bytes              int // read a launch
	copies             int // of what is rotated
	make               func(d *driver) [31]uintptr
	grid, group        [3]int
	registers          int // the most that a thread may take; 0: as the driver's compiler likes
	then               *second
}

// second is a dispatch of another kernel of the file after each of the first, over the same buffers.
type second struct {
	kernel      string
	grid, group [3]int
}

func (c testCase) source() string {
	if c.text != "" {
		return c.text
	}
	return kernels.Source(c.file)
}

func (c testCase) values() map[int]uint32 {
	out := map[int]uint32{}
	for i, v := range c.constants {
		out[i] = v
	}
	return out
}

func (c testCase) mark() string { return marked(c.source(), c.values()) }

func cases() (all []testCase) {
	for _, groups := range []int{132 * 2, 132 * 4, 132 * 8, 132 * 16} {
		all = append(all, ceiling(groups, 1<<30))
	}
	// a launch of as little as the smallest matrix that the bar is for
	for _, groups := range []int{132, 132 * 2, 132 * 4, 132 * 8} {
		all = append(all, ceiling(groups, 10240*5120/64*36))
	}
	for _, s := range []struct {
		name    string
		out, in int
	}{{"linear attention qkv", 10240, 5120}, {"attention q with gate", 12288, 5120}, {"MLP gate, or up", 17408, 5120},
		{"MLP down", 5120, 17408}, {"head", 248320, 5120},
		{"linear attention z (below 25 MB)", 6144, 5120}} {
		all = append(all, gemv(s.name, 1, 1, 0, s.out, s.in))
	}
	all = append(all, projections("qkv, z, b and a", 1, 10240, 6144, 48, 48),
		projections("q with gate, k and v", 1, 12288, 1024, 1024))
	all = append(all, gemv("MLP gate and up with SwiGLU, one dispatch", 1, 2, 1, 17408, 5120),
		gemv("MLP gate, or up, 5 rows", 5, 1, 0, 17408, 5120))
	for _, splits := range []int{128, 256} {
		for _, registers := range []int{0, 128} {
			c := decode("attention_decode_q8", true, 6, splits)
			c.registers = registers
			all = append(all, c)
		}
	}
	for _, k := range []int{1, 20} {
		all = append(all, selecting(k, false), selecting(k, true))
	}
	return append(all, decode("attention_decode", true, 6, 128), decode("attention_decode", false, 6, 128),
		decode("attention_decode", false, 3, 128))
}

// ceiling is a plain read of n bytes a launch.
func ceiling(groups, n int) testCase {
	return testCase{name: fmt.Sprintf("read of %.1f MB by %d threadgroups of 512", float64(n)/1e6, groups),
		file: "ceiling", kernel: "ceiling", text: string(read("ceiling.metal")), constants: []uint32{},
		bytes: n, copies: rotated/n + 2, grid: [3]int{groups, 1, 1}, group: [3]int{512, 1, 1},
		make: func(d *driver) [31]uintptr {
			return [31]uintptr{put(d, []uint32{uint32(n / 16)}), d.alloc(4, 0), d.fill(n, noise())}
		}}
}

// projections are the products of one input as the host runs them, in one dispatch.
func projections(name string, rows int, outs ...int) testCase {
	const in = 5120
	one, tiles := 0, 0
	p := kernels.LinearGemvParams{In: in, Tile1: 1 << 31, Tile2: 1 << 31, Tile3: 1 << 31}
	to, begins := []*uint32{&p.Out0, &p.Out1, &p.Out2, &p.Out3}, []*uint32{new(uint32), &p.Tile1, &p.Tile2, &p.Tile3}
	for q, out := range outs {
		*to[q], *begins[q] = uint32(out), uint32(tiles)
		tiles += (out + 3) / 4
		one += out*in/2 + out*in/64*4
	}
	return testCase{name: fmt.Sprintf("linear_gemv, %s in one dispatch, %.1f MB", name, float64(one)/1e6),
		file: "linear_gemv", kernel: "linear_gemv_affine",
		constants: []uint32{4, 64, 2, uint32(rows), 0, 1}, bytes: one, copies: rotated/one + 2, grid: [3]int{
			tiles, 1, 1},
		group: [3]int{64, 1, 1}, make: func(d *driver) (b [31]uintptr) {
			b[0], b[5] = put(d, []kernels.LinearGemvParams{p}), d.alloc(4*rows*in, 0x3f800000)
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

// gemv is products of [out, in], 4 bits by 64 with bf16 scales and biases.
func gemv(name string, rows, products, gated, out, in int) testCase {
	codes, scales := out*in/2, out*in/64*2
	one := products * (codes + 2*scales)
	const outputs = 4 // of a threadgroup: gate and up, or split as the host does from 1,024 columns on
	split := 1 - uint32(gated)
	return testCase{name: fmt.Sprintf("linear_gemv, %s [%d,%d], %.1f MB", name, out, in, float64(one)/1e6),
		file: "linear_gemv", kernel: "linear_gemv_affine",
		constants: []uint32{4, 64, 2, uint32(rows), uint32(gated), split}, bytes: one, copies: rotated/one + 2,
		grid: [3]int{(out + outputs - 1) / outputs, 1, 1}, group: [3]int{64, 1, 1},
		make: func(d *driver) (b [31]uintptr) {
			const never = 1 << 31
			b[0] = put(d, []kernels.LinearGemvParams{
				{In: uint32(in), Tile1: never, Tile2: never, Tile3: never, Out0: uint32(out), Out1: uint32(out),
					Out2: uint32(out), Out3: uint32(out)}})
			b[5] = d.alloc(4*rows*in, 0x3f800000)
			for q := range 4 {
				if q < products {
					b[1+q], b[6+q], b[10+q], b[14+q] = d.alloc(4*rows*out, 0), d.fill(codes, noise()),
						d.alloc(scales, 0x3c003c00), d.alloc(scales, 0xbd00bd00)
				} else {
					b[1+q], b[6+q], b[10+q], b[14+q] = b[1], b[6], b[10], b[14]
				}
			}
			return b
		}}
}

// decode is one row of the 27B's attention, 24 heads over 4 of 256, at 131,072 tokens, pages in no order.
func decode(file string, q8 bool, heads, splits int) testCase {
	const tokens, kvHeads, dim, page = 131072, 4, 256, 256
	row, form, constants := 2*dim, "f16", []uint32{0, uint32(heads)}
	if q8 {
		row, form, constants[0] = dim+dim/16, "q8", 1
	}
	if file == "attention_decode_q8" {
		constants = constants[1:]
	}
	side := tokens * kvHeads * row
	return testCase{name: fmt.Sprintf("%s, %s, %d heads a threadgroup, %d splits of 131,072 tokens, %.0f MB", file,
		form, heads, splits, float64(2*side)/1e6),
		file: file, kernel: file + "_d256", constants: constants, bytes: 2 * side, copies: rotated/(2*side) + 2,
		grid: [3]int{splits, 24 / heads, 1}, group: [3]int{128, 1, 1}, make: func(d *driver) (b [31]uintptr) {
			p := kernels.AttentionDecodeParams{AttentionParams: kernels.AttentionParams{
				Rows: 1, Start: tokens - 1, Heads: 24, KVHeads: kvHeads, Dim: dim, Scale: 1.0 / 16},
				Splits: uint32(splits), SplitTokens: uint32(tokens / splits)}
			table := make([]int32, tokens/page)
			for i := range table {
				table[i] = int32(i)
			}
			rand.New(rand.NewPCG(1, 1)).Shuffle(len(table), func(i, j int) { table[i], table[j] = table[j], table[i] })
			b[0] = put(d, []kernels.AttentionDecodeParams{p})
			b[1], b[2] = d.alloc(4*24*splits*(dim+2), 0), put(d, queries(24*dim))
			b[3], b[4], b[5] = d.fill(side, pagesOf(kvHeads, dim, q8)), d.fill(side, pagesOf(kvHeads, dim, q8)),
				put(d, table)
			return b
		}}
}

// selecting is the k largest of a row of the 27B's logits.
func selecting(k int, plain bool) testCase {
	const cols, slice = logitCols, 2048
	c := testCase{name: fmt.Sprintf("top_k, the largest %d of %d, %.1f MB", k, cols, 4*cols/1e6), file: "top_k",
		kernel: "top_k_slices", constants: []uint32{}, bytes: 4 * cols, copies: rotated/(4*cols) + 2,
		grid: [3]int{(cols + slice - 1) / slice, 1, 1}, group: [3]int{256, 1, 1}, then: &second{
			"top_k_merge", [3]int{1, 1, 1}, [3]int{32, 1, 1}}, make: func(d *driver) (b [31]uintptr) {
			b[0], b[1], b[2] = put(d, []kernels.TopKParams{{Rows: 1, Cols: cols, K: uint32(k)}}), d.alloc(4*k, 0),
				d.alloc(4*k, 0)
			b[3], b[4] = put(d, logits()), d.alloc(8*k*((cols+slice-1)/slice), 0)
			return b
		}}
	if plain {
		c.file, c.kernel, c.grid[0], c.then = "top_k_plain", "top_k_plain", 1, nil
		c.name = strings.Replace(c.name, "top_k", "top_k_plain", 1)
	}
	return c
}

// measure reports the rates of the cases with word in their names; the ceiling is the best of the first ones.
func measure(dir, word string, report func(rate)) error {
	d, err := openDriver()
	if err != nil {
		return err
	}
	var best float64
	for _, c := range cases() {
		if c.kernel != "ceiling" && !strings.Contains(c.name, word) {
			continue
		}
		r := d.rate(dir, c)
		if c.kernel == "ceiling" && c.bytes == 1<<30 {
			best = max(best, r.GBs)
		}
		r.Share = r.GBs / best
		report(r)
	}
	return nil
}

// occupy keeps the GPU busy for some milliseconds, in which what is to be measured is launched: its time is then the
// GPU's, not the host's.
func (d *driver) occupy(dir string) {
	if d.busy == 0 {
		c := ceiling(132*2, 1<<30)
		d.busy, _ = d.function(dir, c.mark(), c.kernel, 0)
		d.busyWith = c.make(d)
	}
	c := ceiling(132*2, 1<<30)
	for range 40 {
		d.start(d.busy, c.grid, c.group, &d.busyWith)
	}
}

// rate launches a case over its copies, one after another: the median of five rounds, each all copies once, after one
// that is not counted.
func (d *driver) rate(dir string, c testCase) rate {
	f, registers := d.function(dir, c.mark(), c.kernel, c.registers)
	var next uintptr
	if c.then != nil {
		next, _ = d.function(dir, c.mark(), c.then.kernel, c.registers)
	}
	copies := make([][31]uintptr, c.copies)
	for i := range copies {
		copies[i] = c.make(d)
	}
	var rounds []float64
	for range 6 {
		d.occupy(dir)
		rounds = append(rounds, d.seconds(func() {
			for i := range copies {
				d.start(f, c.grid, c.group, &copies[i])
				if next != 0 {
					d.start(next, c.then.grid, c.then.group, &copies[i])
				}
			}
		}))
	}
	rounds = rounds[1:]
	sort.Float64s(rounds)
	for i := range copies {
		freed := map[uintptr]bool{0: true}
		for _, b := range copies[i] {
			if !freed[b] {
				must("giving memory back", d.memFree(b))
				freed[b] = true
			}
		}
	}
	seconds := rounds[len(rounds)/2] / float64(c.copies)
	return rate{Name: c.name, Bytes: c.bytes, Seconds: seconds, GBs: float64(c.bytes) / seconds / 1e9,
		Registers: registers}
}

//go:build unix

package metal_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/kernels"
	"slipway/metal/selftest"
)

// edge is the sizes that a kernel is tested with: one, block-1, block, block+1, and one that fits no block. Where the
// host never gives a kernel such a size: the smallest that it gives, and the next.
type edge struct {
	size string
	at   []int
}

// plane is a thread an element in threadgroups of 32 by 4.
func plane(x, y string) []edge {
	return []edge{{x, []int{1, 31, 32, 33, 100}}, {y, []int{1, 3, 4, 5, 9}}}
}

var edges = map[string][]edge{
	"embed_affine":   {{"in", []int{32, 64, 256}}, {"rows", []int{1, 3, 4, 5, 9}}}, // in is a multiple of 32
	"embed_dense":    plane("in", "rows"),
	"rms_norm":       {{"cols", []int{1, 255, 256, 257, 320}}, {"rows", []int{1, 2}}},
	"rms_norm_plain": {{"rows", []int{1, 63, 64, 65, 100}}, {"cols", []int{1, 31, 257}}},
	"linear_gemv_affine": {{"rows", []int{1, 2, 7, 8}}, {"out", []int{1, 3, 4, 5, 7, 8, 9, 33}},
		{"in", []int{32, 480, 512, 544, 1024, 1088}}, {"gated rows", []int{1, 7, 8}},
		{"gated out", []int{1, 3, 4, 5, 7, 9}}},
	// in is a multiple of 4
	"linear_gemv_dense": {{"rows", []int{1, 2, 7, 8}}, {"out", []int{1, 3, 4, 5, 7, 8, 9, 33}},
		{"in", []int{4, 124, 128, 132, 300}}, {"gated rows", []int{2}}},
	// more than 8 rows
	"linear_gemm_affine": {{"rows", []int{9, 31, 32, 33, 65}}, {"out", []int{1, 31, 32, 33, 40}},
		{"in", []int{32, 64, 544}}},
	"linear_gemm_dense": {{"rows", []int{9, 31, 32, 33, 65}}, {"out", []int{1, 31, 32, 33, 40}},
		{"in", []int{32, 64, 96}}},
	// 3 to 8 rows, 4 bits by groups of whole 64
	"linear_rows": {{"rows", []int{3, 7, 8}}, {"out", []int{1, 7, 8, 9, 15, 16, 17, 33}},
		{"in", []int{64, 128, 192, 960, 1024, 1088, 1152, 2112}}, {"gated rows", []int{3, 7, 8}},
		{"gated out", []int{1, 7, 8, 9, 15, 16, 17, 33}}},
	"rows_half":           {{"rows", []int{3, 7, 8}}, {"in", []int{64, 128, 192}}},
	"linear_plain_affine": {{"out", []int{1, 31, 32, 33, 40}}, {"rows", []int{1, 3, 7, 8, 9}}},
	"linear_plain_dense": {{"out", []int{1, 31, 32, 33, 40}}, {"rows", []int{1, 3, 7, 8, 9}},
		{"in", []int{1, 3, 4, 5, 31, 32, 33}}},
	"swiglu": {{"count", []int{1, 63, 64, 65, 300}}},
	"gather": plane("cols", "rows"),
	"top_k_slices": {{"cols", []int{1, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049}},
		{"k", []int{1, 4, 31, 32}}, {"rows", []int{1, 3}}},
	// a lane has a list of 2,048, or two
	"top_k_merge": {{"cols", []int{1, 2048, 2049, 65536, 65537}}, {"k", []int{1, 31, 32}},
		{"rows", []int{1, 3}}},
	"top_k_plain": {{"cols", []int{1, 255, 256, 257, 300}}, {"k", []int{1, 4, 33, 40}},
		{"rows", []int{1, 3}}},
	"rotation":         plane("pairs", "rows"),
	"delta_input":      {{"channels", []int{3, 63, 64, 65, 100}}, {"rows", []int{1, 2, 3, 4, 5, 70}}},
	"delta_step":       {{"value dim", []int{1, 3, 4, 5, 33}}, {"rows", []int{1, 2, 16}}},
	"delta_step_plain": {{"value dim", []int{1, 31, 32, 33, 40}}, {"rows", []int{1, 2, 70}}},
	// more than 16 rows; value dim a multiple of 8
	"delta_chunk":           {{"rows", []int{17, 31, 32, 33, 100}}, {"value dim", []int{8, 24, 32, 40}}},
	"gated_norm":            {{"heads", []int{1, 3, 4, 5, 10}}, {"dim", []int{1, 31, 32, 33, 128}}},
	"gated_norm_plain":      {{"heads", []int{1, 63, 64, 65, 99}}, {"dim", []int{1, 33}}},
	"attention_input":       {{"dim", []int{2, 31, 32, 33, 100}}, {"rows", []int{1, 2, 17}}},
	"attention_input_plain": {{"all heads", []int{3, 31, 32, 33, 36}}, {"rows", []int{1, 3, 4, 5, 9}}},
	"attention_plain": {{"heads", []int{1, 31, 32, 33, 34}}, {"rows", []int{1, 3, 4, 5, 9}},
		{"keys", []int{1, 255, 256, 257, 701}}},
	// more than 8 rows
	"attention_flash":     {{"rows", []int{9, 15, 16, 17, 33}}, {"keys", []int{9, 31, 32, 33, 255, 256, 257, 717}}},
	"attention_decode":    {{"rows", []int{1, 2, 7, 8}}, {"keys", []int{1, 31, 32, 33, 255, 256, 257, 701}}},
	"attention_decode_q8": {{"rows", []int{1, 2, 7, 8}}, {"keys", []int{1, 31, 32, 33, 255, 256, 257, 701}}},
	"attention_combine":   {{"rows", []int{1, 2, 8}}, {"keys", []int{1, 256, 257, 513, 701}}}, // a split is 256 keys
}

// valueless are the kernels that read no number that could be large, denormal or none.
var valueless = map[string]bool{"rotation": true}

var kernelFunction = regexp.MustCompile(`(?m)^kernel void ([a-z0-9_]+)\(`)

// functions are the kernels of the folder, and the names of their instances.
func functions() (names, instances []string) {
	for _, file := range kernels.Names() {
		text := kernels.Source(file)
		for _, m := range kernelFunction.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		for _, m := range regexp.MustCompile(`host_name\("([a-z0-9_]+)"\)`).FindAllStringSubmatch(text, -1) {
			instances = append(instances, m[1])
		}
	}
	return names, instances
}

// functionOf is the kernel of an instance: attention_decode_q8 of attention_decode_q8_d64.
func functionOf(instance string, names []string) (longest string) {
	for _, name := range names {
		if strings.HasPrefix(instance, name) && len(name) > len(longest) {
			longest = name
		}
	}
	return longest
}

// Each kernel of the folder is run at the edges of its blocks, at one row, at the sizes of the largest model, with
// values far from one and beside a NaN, by the operations of the other tests.
func TestEveryKernelRunsAtItsEdges(t *testing.T) {
	names, instances := functions()
	// run notes which kernels a recording runs, on each kind of device; the kernels themselves do nothing.
	devices := variants(t)
	run := func(record func(w *selftest.World)) (used []string) {
		for _, d := range devices {
			d.Used()
			w := selftest.NewWorld(d, 1)
			record(w)
			w.Release()
			used = append(used, d.Used()...)
		}
		return used
	}
	reach := func(all []selftest.Operation) (reached map[string]bool, sizes map[string]map[string][]int) {
		reached, sizes = map[string]bool{}, map[string]map[string][]int{}
		for _, o := range all {
			used := run(func(w *selftest.World) {
				if _, err := o.Do(w); err != nil {
					t.Fatal(o.Name, err)
				}
			})
			for _, instance := range used {
				name := functionOf(instance, names)
				reached[instance], reached[name] = true, true
				if sizes[name] == nil {
					sizes[name] = map[string][]int{}
				}
				for size, at := range o.Sizes {
					sizes[name][size] = append(sizes[name][size], at...)
				}
			}
		}
		return reached, sizes
	}
	tiles, sizes := reach(slices.Concat(selftest.TileShapes(), selftest.Few()))
	largest, _ := reach(selftest.Largest27B())
	few, _ := reach(selftest.Few())
	spoilt := map[string]bool{}
	recordings := []func(w *selftest.World){
		func(w *selftest.World) { spoiltAttention(w, device.KVNative, true) },
		func(w *selftest.World) { spoiltAttention(w, device.KVQ8, true) },
		func(w *selftest.World) { spoiltDelta(w, 45, 21, 3, true) },
	}
	for _, c := range spoiling {
		recordings = append(recordings, func(w *selftest.World) { c.run(w, true) })
	}
	for _, record := range recordings {
		for _, instance := range run(record) {
			spoilt[functionOf(instance, names)] = true
		}
	}
	for _, instance := range instances {
		if !tiles[instance] {
			t.Errorf("%s is run at no tile shape", instance)
		}
	}
	for _, name := range names {
		if edges[name] == nil {
			t.Errorf("%s: nothing says where its blocks end", name)
		}
		for _, e := range edges[name] {
			for _, at := range e.at {
				if !slices.Contains(sizes[name][e.size], at) {
					t.Errorf("%s is never run at %s %d", name, e.size, at)
				}
			}
		}
		if !largest[name] {
			t.Errorf("%s is never run at the 27B's sizes", name)
		}
		if !few[name] {
			t.Errorf("%s is not among the operations at values of 1e4 and denormals", name)
		}
		if !spoilt[name] && !valueless[name] {
			t.Errorf("%s is never given a NaN", name)
		}
	}
	for name := range edges {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no kernel", name)
		}
	}
}

// variants are devices that together run every kernel: fast, plain, and with bf16 operands.
func variants(t *testing.T) (all []*metal.Device) {
	for _, d := range metals(t, fake.Configuration{NoWork: true}) {
		all = append(all, d)
	}
	return append(all, open(t, fake.Configuration{NoWork: true}, metal.Options{BF16: true}))
}

package selftest

import (
	"slices"

	"slipway/engine/device"
)

// near is a policy that hides keys of a long context, narrow one of a short context, from rows 40 and 41.
var (
	near   = device.AttentionPolicy{Sink: 40, Window: 70, DenseFrom: 1 << 20}
	narrow = device.AttentionPolicy{Sink: 3, Window: 5, DenseFrom: 42}
)

// TileShapes are shapes on both sides of each block edge of the kernels: 32 lanes, 16-column and 512-column steps of
// linear_gemv, tiles of 32 of linear_gemm, 16 rows and 32 keys of attention_flash, 8 rows of decode, pages and splits
// of 256. A test compares the table of edges with them.
func TileShapes() []Operation {
	return slices.Concat(matrixShapes(), rowShapes(), deltaShapes(), attentionShapes())
}

func matrixShapes() (all []Operation) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for i, group := range []int{32, 64, 128} {
			all = append(all, embedding(4, Affine(5, 256, bits, group, []device.Format{f16, bf16, f32}[i])),
				linear(3, Affine(9, 256, bits, group, []device.Format{bf16, f32, f16}[i])),
				linear(10, Affine(9, 256, bits, group, f16)))
		}
	}
	for _, f := range []device.Format{f32, f16, bf16} {
		all = append(all, embedding(4, Dense(3, 33, f)))
		for _, in := range []int{1, 3, 4, 5, 31, 32, 33, 96, 124, 128, 132, 300} {
			all = append(all, linear(1, Dense(5, in, f)), linear(9, Dense(5, in, f)))
		}
	}
	for _, n := range []int{1, 3, 4, 5, 9} {
		all = append(all, embedding(n, Affine(5, 32, 4, 32, f16)), embedding(n, Affine(5, 64, 8, 64, bf16)),
			embedding(n, Dense(3, 31, bf16)))
	}
	for _, in := range []int{1, 32, 100} {
		all = append(all, embedding(2, Dense(3, in, f16)))
	}
	for _, n := range []int{1, 2, 3, 7, 8, 9, 31, 32, 33, 65} {
		for _, out := range []int{1, 3, 4, 5, 7, 8, 9, 31, 32, 33, 40} {
			all = append(all, linear(n, Affine(out, 64, 4, 32, f16)))
		}
		all = append(all, linear(n, Affine(40, 544, 8, 32, bf16)), linear(n, Affine(12, 512, 4, 64, bf16)),
			linear(n, Affine(5, 32, 4, 32, f16)), linear(n, Affine(5, 480, 8, 32, f16)),
			linear(n, Dense(33, 96, f16)), gating(n, Affine(7, 64, 4, 32, f16)))
	}
	for _, out := range []int{1, 3, 4, 5, 7, 8, 9, 31, 32, 40} {
		all = append(all, linear(2, Dense(out, 132, bf16)), linear(33, Dense(out, 64, f16)),
			gating(2, Affine(out, 64, 8, 32, f16)))
	}
	for _, n := range []int{1, 3, 8} { // few long rows: split
		all = append(all, linear(n, Affine(6, 1024, 4, 64, bf16)), linear(n, Affine(11, 1088, 8, 32, f16)),
			linear(n, Affine(4, 1536, 4, 128, f16)))
	}
	for _, n := range []int{3, 7, 8} { // by matrices: 16 outputs, or 8 of gate and of up; 128 columns a simdgroup, of 8
		for _, out := range []int{1, 7, 8, 9, 15, 16, 17, 33} {
			all = append(all, linear(n, Affine(out, 128, 4, 64, bf16)), gating(n, Affine(out, 128, 4, 64, f16)))
		}
		for _, in := range []int{64, 192, 960, 1024, 1088, 1152, 2112} {
			all = append(all, linear(n, Affine(11, in, 4, 64, f32)))
		}
		all = append(all, linear(n, Affine(17, 1152, 4, 128, bf16)), gating(n, Affine(9, 1152, 4, 128, f32)))
	}
	return all
}

func rowShapes() (all []Operation) {
	for _, cols := range []int{1, 31, 32, 33, 255, 256, 257, 320} {
		all = append(all, norm(3, cols, 0, false), norm(2, cols, 5, false), norm(1, cols, 0, true), swiglu(3, cols),
			gathering(4, cols))
	}
	for _, n := range []int{1, 63, 64, 65, 100} {
		all = append(all, norm(n, 3, 0, true), gatedNorm(n, 1, 8), swiglu(n, 1), swiglu(1, n), gathering(2, n))
	}
	for _, n := range []int{1, 3, 4, 5, 9} {
		all = append(all, gathering(n, 33), gatedNorm(n, 1, 32), rotating(7, n, 3))
	}
	for _, n := range []int{1, 2, 7, 8, 9, 31, 32, 33, 65} {
		all = append(all, gatedNorm(n, 3, 32))
	}
	for _, dim := range []int{1, 31, 33, 128} {
		all = append(all, gatedNorm(2, 5, dim))
	}
	for _, pairs := range []int{1, 31, 32, 33, 100} {
		all = append(all, rotating(100, 33, pairs))
	}
	return append(all, rotating(0, 5, 1), rotating(262140, 4, 32), selecting(1, 1, 1), selecting(2, 255, 1),
		selecting(1, 256, 4), selecting(3, 257, 40),
		selecting(1, 31, 31), selecting(3, 32, 32), selecting(1, 33, 33), selecting(1, 33, 4), selecting(2, 257, 5),
		selecting(1, 2047, 32), selecting(2, 2048, 31), selecting(3, 2049, 1), selecting(1, 65536, 1),
		selecting(1, 65537, 2))
}

func deltaShapes() (all []Operation) {
	for _, n := range []int{1, 2, 3, 4, 5, 70} {
		all = append(all, convolving(67, n), convolving(64, n, 1, 3), delta(StateOf(2, 6, 32, 33), n, 2),
			delta(StateOf(1, 2, 64, 4), n), delta(StateOf(2, 4, 8, 16), n, 1))
	}
	for _, channels := range []int{3, 63, 65, 100} {
		all = append(all, convolving(channels, 3))
	}
	for _, dim := range []int{1, 3, 4, 5, 31, 32, 33, 40} {
		all = append(all, delta(StateOf(1, 2, 32, dim), 2), delta(StateOf(1, 1, 16, dim), 2))
	}
	for _, n := range []int{17, 31, 32, 33, 100} {
		all = append(all, delta(StateOf(1, 2, 32, 8), n, 3), delta(StateOf(1, 2, 64, 40), 2, n))
	}
	return append(all, delta(StateOf(1, 2, 32, 24), 17), delta(StateOf(1, 2, 32, 32), 33),
		delta(StateOf(1, 2, 32, 8), 16),
		delta(StateOf(1, 3, 128, 128), 9), delta(StateOf(1, 3, 128, 128), 49))
}

func attentionShapes() (all []Operation) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33} {
		all = append(all, attending(2, 1, 64, 8, place{start: 0, n: n}), attending(3, 3, 32, 4, place{start: 30, n: n}))
	}
	for _, heads := range []int{1, 29, 30, 31, 32, 33, 34} { // keys and values are two more
		all = append(all, attending(heads, 1, 2, 1, place{start: 3, n: 2}))
	}
	for _, dim := range []int{31, 33, 100} {
		all = append(all, attending(2, 1, dim, 8, place{start: 3, n: 2}))
	}
	for _, start := range []int{30, 31, 32, 254, 255, 256, 512, 700} {
		all = append(all, attending(2, 1, 64, 8, place{start: start, n: 1}, place{start: start, n: 17, policy: near},
			place{start: 3, n: 2, policy: near}),
			attending(2, 2, 64, 32, place{start: start, n: 20, policy: device.AttentionPolicy{
				Sink: 40, Window: 70, DenseFrom: start + 9}}))
	}
	for _, keys := range []int{31, 32, 33, 255, 256, 257} { // of the last of a prefill's rows
		all = append(all, attending(2, 1, 64, 8, place{start: keys - 10, n: 10}))
	}
	for _, start := range []int{0, 30, 31, 32, 254, 255, 256, 700} {
		all = append(all, attendingIn(device.KVQ8, 4, 2, 64, 8, place{start: start, n: 1},
			place{start: start, n: 17, policy: near}, place{start: 2, n: 3, policy: near}))
	}
	for _, n := range []int{2, 7, 8} {
		all = append(all, attendingIn(device.KVQ8, 4, 1, 64, 8, place{start: 3, n: n}))
	}
	for _, format := range []device.KVFormat{device.KVNative, device.KVQ8} {
		all = append(all, masked(format)...)
	}
	return append(all, attendingIn(device.KVQ8, 3, 1, 128, 16, place{start: 40, n: 18}, place{start: 270, n: 3}),
		attendingIn(device.KVQ8, 6, 1, 256, 32, place{start: 40, n: 18}, place{start: 270, n: 3}),
		attending(7, 1, 64, 8, place{start: 20, n: 2}), attending(8, 1, 64, 8, place{start: 20, n: 2}),
		attending(2, 1, 128, 16, place{start: 40, n: 18}, place{start: 270, n: 3}),
		attending(6, 1, 256, 32, place{start: 40, n: 18}, place{start: 270, n: 3}))
}

// masked are 1 to 8 rows, and a tile of 17, from which the policy hides keys: so few are left that one more or less
// changes the result. The rows are before DenseFrom, at it and after it; the window is one key, a few, and none, which
// hides nothing whatever DenseFrom is; the sink ends inside eight keys, at their end, and is empty.
func masked(format device.KVFormat) (all []Operation) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 17} {
		all = append(all, attendingIn(format, 2, 1, 64, 8, place{start: 60, n: n, policy: device.AttentionPolicy{
			Sink: 3, Window: 5, DenseFrom: 60 + n/2}},
			place{start: 40, n: n, policy: device.AttentionPolicy{Sink: 8, Window: 1, DenseFrom: 1 << 20}},
			place{start: 20, n: n, policy: device.AttentionPolicy{DenseFrom: 1 << 20}},
			place{start: 40, n: n, policy: device.AttentionPolicy{Window: 3, DenseFrom: 40 + n}}))
	}
	return all
}

// Largest27B are the 27B's widest rows, in slices of its matrices.
func Largest27B() []Operation {
	return []Operation{
		norm(1, 5120, 0, false), linear(1, Affine(24, 17408, 4, 64, bf16)), linear(9, Affine(33, 17408, 4, 64, bf16)),
		linear(4, Affine(24, 17408, 4, 64, bf16)), gating(6, Affine(7, 5120, 4, 64, bf16)),
		linear(1, Affine(17, 5120, 8, 64, bf16)),
		linear(1, Dense(9, 5120, bf16)), linear(9, Dense(33, 5120, bf16)), gating(1, Affine(7, 5120, 4, 64, bf16)),
		embedding(1, Affine(7, 5120, 4, 64, bf16)), embedding(1, Dense(3, 5120, bf16)), gathering(1, 5120),
		swiglu(1, 17408), selecting(1, 20000, 20), convolving(10240, 2), delta(StateOf(16, 48, 128, 128), 2),
		delta(StateOf(16, 48, 128, 128), 20), gatedNorm(1, 48, 128), attending(24, 4, 256, 32, place{start: 300, n: 2},
			place{start: 300, n: 20}),
		attendingIn(device.KVQ8, 24, 4, 256, 32, place{start: 300, n: 2}),
	}
}

// Whole27B are the 27B's matrices whole, and its attention and recurrence over hundreds of tokens: for a device that is
// fast.
func Whole27B() (all []Operation) {
	for _, n := range []int{1, 5, 64} {
		for _, s := range [][2]int{{10240, 5120}, {6144, 5120}, {48, 5120}, {12288, 5120}, {1024, 5120}, {17408, 5120},
			{5120, 17408}, {5120, 6144}} {
			all = append(all, linear(n, Affine(s[0], s[1], 4, 64, bf16)))
		}
		all = append(all, norm(n, 5120, 0, false), swiglu(n, 17408), convolving(10240, n), gatedNorm(n, 48, 128),
			delta(StateOf(16, 48, 128, 128), n))
	}
	return append(all, selecting(1, 248320, 1), selecting(5, 248320, 20), selecting(1, 248320, 32),
		linear(1, Affine(20000, 5120, 8, 64, bf16)), gating(1, Affine(17408, 5120, 4, 64, bf16)),
		delta(StateOf(16, 48, 128, 128), 500),
		attending(24, 4, 256, 32, place{start: 3000, n: 5}, place{start: 500, n: 70}),
		attendingIn(device.KVQ8, 24, 4, 256, 32, place{start: 3000, n: 5}, place{start: 500, n: 70}))
}

// Few is one operation of every kernel file, at a shape with ragged edges.
func Few() []Operation {
	return []Operation{
		embedding(4, Affine(5, 64, 4, 32, f16)), embedding(3, Dense(3, 33, bf16)), norm(3, 257, 0, true),
		linear(3, Affine(33, 544, 4, 32, bf16)), linear(33, Affine(33, 96, 8, 32, f16)),
		linear(2, Affine(7, 1088, 4, 32, f16)), gating(3, Affine(9, 64, 8, 32, f16)),
		gating(2, Shape{out: 6, in: 36, format: bf16}), linear(3, Affine(33, 64, 5, 32, f16)),
		linear(2, Shape{out: 9, in: 132, format: bf16}), linear(34, Shape{out: 33, in: 64, format: f16}),
		linear(3, Affine(19, 1152, 4, 64, bf16)), gating(5, Affine(11, 192, 4, 64, f16)), swiglu(3, 100),
		gathering(4, 33), selecting(2, 300, 5), selecting(1, 300, 40), rotating(200, 3, 8),
		convolving(67, 5, 2), delta(StateOf(2, 6, 32, 33), 5, 2), delta(StateOf(1, 2, 128, 7), 3),
		delta(StateOf(1, 2, 32, 40), 43), gatedNorm(3, 3, 33),
		attending(2, 1, 64, 8, place{start: 131, n: 3}, place{start: 250, n: 17}),
		attending(2, 1, 256, 8, place{start: 3, n: 17, policy: near}),
		attendingIn(device.KVQ8, 6, 1, 64, 8, place{start: 131, n: 3}, place{start: 250, n: 17}),
		attending(2, 1, 64, 8, place{start: 40, n: 3, policy: narrow}),
		attendingIn(device.KVQ8, 2, 1, 64, 8, place{start: 40, n: 3, policy: narrow}),
		small(norm(2, 33, 5, false)), small(gatedNorm(2, 3, 33)), small(delta(StateOf(1, 2, 32, 8), 3, 20)),
		small(attending(2, 1, 64, 8, place{start: 3, n: 2})),
	}
}

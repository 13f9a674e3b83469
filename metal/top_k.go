//go:build unix

package metal

import (
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// Limits of top_k: columns of a threadgroup, threadgroups of a row, and k. Longer rows and larger k use top_k_plain.
const (
	topKSlice  = 2048
	topKSlices = 128
	topKMost   = 32
)

func (p *pass) encodeTopK(e *encoder, o *device.TopK) error {
	values, ids, src := own(o.Values), own(o.IDs), own(o.Src)
	cols, k := src.cols, values.cols
	params := kernels.TopKParams{Rows: u32(o.Rows), Cols: u32(cols), K: u32(k)}
	slices := variant{library: "top_k", name: "top_k_slices", threads: 256}
	merge := variant{library: "top_k", name: "top_k_merge", threads: 32}
	plain := variant{library: "top_k_plain", name: "top_k_plain", threads: 256}
	n := divide(cols, topKSlice)
	if k > topKMost || n > topKSlices || p.dev.either(slices, plain) == plain || p.dev.either(merge, plain) == plain {
		return e.run(plain, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{o.Rows, 1, 1},
			[3]int{256, 1, 1},
			float64(4*o.Rows*cols*k), 0, values.use(1, write), ids.use(2, write), src.use(3, read))
	}
	if err := p.growPartial("the largest of slices", 2*o.Rows*n*k); err != nil {
		return err
	}
	err := e.run(slices, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{n, o.Rows, 1}, [3]int{256, 1, 1},
		float64(4*o.Rows*cols), 0, src.use(3, read), use{p.meta.partial, 0, 4, write})
	if err != nil {
		return err
	}
	e.phase()
	return e.run(merge, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{o.Rows, 1, 1}, [3]int{32, 1, 1},
		float64(8*o.Rows*n*k), 0, values.use(1, write), ids.use(2, write), src.use(3, read),
		use{p.meta.partial, 0, 4, read})
}

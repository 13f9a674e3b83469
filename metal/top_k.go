//go:build unix

package metal

import (
	"fmt"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// TopK writes the k largest values of each of the first rows rows of src into values [rows, k], largest first, and their columns, as
// numbers, into ids [rows, k]. It implements device.SelectingPass.
func (p *pass) TopK(values, ids, src device.Buffer, rows int) {
	o := op{kind: opTopK, rows: rows, dst: own(values, rows), a: own(ids, rows), b: own(src, rows)}
	wantCols("ids", o.a.cols, o.dst.cols)
	if o.dst.cols > o.b.cols || o.b.cols > 1<<24 {
		panic(fmt.Sprintf("metal: the largest %d of %d columns", o.dst.cols, o.b.cols))
	}
	p.add(o)
}

// What top_k takes: columns of a threadgroup, threadgroups a row, and k. Longer rows and larger k go by top_k_plain.
const (
	topKSlice  = 2048
	topKSlices = 128
	topKMost   = 32
)

func (p *pass) encodeTopK(e *encoder, o *op) error {
	cols, k := o.b.cols, o.dst.cols
	params := kernels.TopKParams{Rows: u32(o.rows), Cols: u32(cols), K: u32(k)}
	slices := variant{library: "top_k", name: "top_k_slices", threads: 256}
	merge := variant{library: "top_k", name: "top_k_merge", threads: 32}
	plain := variant{library: "top_k_plain", name: "top_k_plain", threads: 256}
	n := divide(cols, topKSlice)
	if k > topKMost || n > topKSlices || p.dev.either(slices, plain) == plain || p.dev.either(merge, plain) == plain {
		return e.run(plain, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{o.rows, 1, 1}, [3]int{256, 1, 1},
			float64(4*o.rows*cols*k), 0, o.dst.use(1, write), o.a.use(2, write), o.b.use(3, read))
	}
	if err := p.growPartial("the largest of slices", 2*o.rows*n*k); err != nil {
		return err
	}
	err := e.run(slices, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{n, o.rows, 1}, [3]int{256, 1, 1},
		float64(4*o.rows*cols), 0, o.b.use(3, read), use{p.meta.partial, 0, 4, write})
	if err != nil {
		return err
	}
	e.phase()
	return e.run(merge, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{o.rows, 1, 1}, [3]int{32, 1, 1},
		float64(8*o.rows*n*k), 0, o.dst.use(1, write), o.a.use(2, write), o.b.use(3, read), use{p.meta.partial, 0, 4, read})
}

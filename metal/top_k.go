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

func (p *pass) encodeTopK(e *encoder, o *op) error {
	params := kernels.TopKParams{Rows: u32(o.rows), Cols: u32(o.b.cols), K: u32(o.dst.cols)}
	return e.run(variant{library: "top_k", name: "top_k", threads: 256}, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{o.rows, 1, 1}, [3]int{256, 1, 1},
		float64(4*o.rows*o.b.cols*o.dst.cols), 0, o.dst.use(1, write), o.a.use(2, write), o.b.use(3, read))
}

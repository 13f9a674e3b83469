package cpu

import (
	"math"

	"slipway/engine/device"
)

// TopK implements device.SelectingPass: one look at every value, which is held against the worst of the best so far, up to the first NaN.
func (p *pass) TopK(values, ids, src device.Buffer, rows int) {
	o := op{kind: opTopK, rows: rows, dst: own(values, rows), a: own(ids, rows), b: own(src, rows)}
	wantCols("ids", o.a.cols, o.dst.cols)
	if o.dst.cols > o.b.cols || o.b.cols > 1<<24 {
		panic("cpu: more of the largest than columns, or columns that f32 does not number")
	}
	p.add(o, o.b.cols)
}

func (o *op) topK(lo, hi int) {
	for r := lo; r < hi; r++ {
		values, ids := o.dst.row(r), o.a.row(r)
		found, last := 0, len(values)-1
		for i, v := range o.b.row(r) {
			if v != v {
				found = 0
				break
			}
			if found > last && v <= values[last] {
				continue
			}
			at := min(found, last)
			found = min(found+1, last+1)
			for ; at > 0 && v > values[at-1]; at-- {
				values[at], ids[at] = values[at-1], ids[at-1]
			}
			values[at], ids[at] = v, float32(i)
		}
		for ; found <= last; found++ {
			values[found], ids[found] = float32(math.NaN()), -1
		}
	}
}

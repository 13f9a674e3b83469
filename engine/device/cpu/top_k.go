package cpu

import (
	"math"

	"slipway/engine/device"
)

// topK finds the largest of rows [lo, hi) in one look at every value, which is compared with the worst of the best so
// far, up to the first NaN.
func topK(o *device.TopK, lo, hi int) {
	allValues, allIDs, src := own(o.Values), own(o.IDs), own(o.Src)
	for r := lo; r < hi; r++ {
		values, ids := allValues.row(r), allIDs.row(r)
		found, last := 0, len(values)-1
		for i, v := range src.row(r) {
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

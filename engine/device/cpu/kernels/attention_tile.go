//go:build amd64 || arm64

package kernels

import (
	"slices"
	"unsafe"
)

// attendRows is how many query rows share one pass over the keys: their scores, 1 KiB a row, stay in the second-level
// cache.
const attendRows = 48

// attendTile is how many rows share the values where a causal border makes their counts differ.
const attendTile = 6

func attendBlock(acc []float32, accStride int, state []Softmax, q []float32, qStride, headDim int, block KVBlock,
	counts []int, factor float32) {
	if active == Plain {
		attendBlockPlain(acc, accStride, state, q, qStride, headDim, block, counts, factor)
		return
	}
	s := takeScratch()
	scores := s.row(attendRows * BlockTokens)
	for lo := 0; lo < len(counts); {
		if counts[lo] == 0 {
			lo++
			continue
		}
		hi := lo
		for hi < len(counts) && hi < lo+attendRows && counts[hi] > 0 {
			hi++
		}
		a := attention{acc[lo*accStride:], accStride, headDim, block, scores, counts[lo:hi]}
		a.dots(q[lo*qStride:], qStride)
		for r, n := range a.counts {
			state[lo+r].weigh(scores[r*BlockTokens:][:n], a.acc[r*accStride:][:headDim], factor)
		}
		a.values()
		lo = hi
	}
	s.give()
}

// attention is one pass of rows that all see at least one token.
type attention struct {
	acc                []float32
	accStride, headDim int
	block              KVBlock
	scores             []float32 // [rows][BlockTokens]
	counts             []int
}

// dots writes the scores of all rows for the tokens that the row with most sees, and a few more, to whole panels. Where
// a whole panel would reach past the keys, as it can in a block that is cut from the end of another, its tokens go one
// by one.
func (a *attention) dots(q []float32, qStride int) {
	rows, keys := len(a.counts), a.block.Keys
	most := slices.Max(a.counts)
	last := (a.headDim - 1) * BlockTokens
	_ = q[(rows-1)*qStride+a.headDim-1]
	_ = keys[last+most-1]
	panels := (most + OutUnit - 1) / OutUnit
	if last+panels*OutUnit > len(keys) {
		panels--
		for r := range rows {
			for t := panels * OutUnit; t < most; t++ {
				var sum float32
				for d, v := range q[r*qStride:][:a.headDim] {
					sum = fma32(v, keys[d*BlockTokens+t], sum)
				}
				a.scores[r*BlockTokens+t] = sum
			}
		}
	}
	for p := 0; p < panels; {
		t := tileArgs{
			c: unsafe.Pointer(&a.scores[p*OutUnit]), cStride: 4 * BlockTokens, a: pointer(q), aStride: 4 * qStride,
			b: unsafe.Pointer(&keys[p*OutUnit]), bStep: 4 * BlockTokens, bPanel: 4 * OutUnit, k: a.headDim, rows: rows,
		}
		p += t.tile(panels - p)
	}
}

// values adds the weighted values: rows with equal counts together, otherwise attendTile rows together as far as they
// all see, and then each alone.
func (a *attention) values() {
	for lo := 0; lo < len(a.counts); {
		n, hi := a.counts[lo], lo+1
		for hi < len(a.counts) && a.counts[hi] == n {
			hi++
		}
		if hi-lo < attendTile {
			hi = min(lo+attendTile, len(a.counts))
		}
		least := slices.Min(a.counts[lo:hi])
		a.add(lo, hi, 0, least)
		for r := lo; r < hi; r++ {
			a.add(r, r+1, least, a.counts[r])
		}
		lo = hi
	}
}

// add adds the values of tokens [from, to) to rows [lo, hi).
func (a *attention) add(lo, hi, from, to int) {
	if from == to {
		return
	}
	stride := a.block.ValueStride
	values := a.block.Values[from*stride : (to-1)*stride+a.headDim]
	acc := a.acc[lo*a.accStride : (hi-1)*a.accStride+a.headDim]
	scores := a.scores[lo*BlockTokens+from:]
	panels := a.headDim / OutUnit
	for p := 0; p < panels; {
		t := tileArgs{
			c: unsafe.Pointer(&acc[p*OutUnit]), cStride: 4 * a.accStride, a: pointer(scores), aStride: 4 * BlockTokens,
			b: unsafe.Pointer(&values[p*OutUnit]), bStep: 4 * stride, bPanel: 4 * OutUnit, k: to - from, rows: hi - lo,
			resume: 1,
		}
		p += t.tile(panels - p)
	}
	for r := range hi - lo { // the dimensions that fill no panel
		for d := panels * OutUnit; d < a.headDim; d++ {
			sum := acc[r*a.accStride+d]
			for i := range to - from {
				sum = fma32(scores[r*BlockTokens+i], values[i*stride+d], sum)
			}
			acc[r*a.accStride+d] = sum
		}
	}
}

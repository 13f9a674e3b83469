package kernels

import (
	"fmt"
	"math"
)

// BlockTokens is the number of tokens of a KV block (a page).
const BlockTokens = 256

// A KVBlock is the keys and values of one KV head for up to BlockTokens consecutive tokens.
//
// Keys are stored transposed, so that the scores of a query run over tokens in vector lanes; StoreKey writes one.
// Values are one row a token. Places of tokens that are not yet written may hold anything, NaN included. A block that
// begins at a later token t of another is cut from it as Keys[t:], Values[t·ValueStride:].
type KVBlock struct {
	Keys        []float32 // [headDim][BlockTokens]
	Values      []float32 // [BlockTokens] rows of headDim, ValueStride apart
	ValueStride int       // at least headDim
}

// StoreKey writes the key of token t of a block, t in [0, BlockTokens), to keys [len(key)][BlockTokens].
func StoreKey(keys []float32, t int, key []float32) {
	if t < 0 || t >= BlockTokens {
		panic(fmt.Sprintf("kernels: token %d of a block of %d", t, BlockTokens))
	}
	keys = keys[:len(key)*BlockTokens]
	for i, v := range key {
		keys[i*BlockTokens+t] = v
	}
}

// LoadKey reads back what StoreKey wrote, len(key) numbers.
func LoadKey(key, keys []float32, t int) {
	for i := range key {
		key[i] = keys[i*BlockTokens+t]
	}
}

// Softmax is the running state of the online softmax of one query row.
type Softmax struct {
	Max float32 // largest score so far, -Inf at the start
	Sum float32 // Σ e^(score - Max)
}

// ResetAttention prepares rows: acc rows are zeroed, the states set to their start.
func ResetAttention(acc []float32, accStride, headDim int, state []Softmax) {
	for r := range state {
		state[r] = Softmax{Max: float32(math.Inf(-1))}
		clear(acc[r*accStride:][:headDim])
	}
}

// AttendBlock adds one KV block to the attention of len(counts) query rows of one head.
//
// Row r is q[r·qStride:][:headDim]; it sees the first counts[r] tokens of the block, counts[r] in [0, BlockTokens]; a
// row that sees none is left as it is. scores = (q·key)·scale. acc[r·accStride:][:headDim] and state[r] carry the
// online softmax from block to block; FinishAttention divides at the end.
//
// The query heads that share a KV head may be rows of one call, and then share its reads.
//
// A row's result depends only on its own query, the counts of the blocks it was given and their order: blocks at
// absolute positions make it independent of how a prompt is cut. Per block: scores are chains of fused multiply-add
// over the head dimension; their largest value with the old Max is the new Max; acc and Sum are multiplied by e^(old -
// new); Sum gets the block's weights in the package's order of summation; acc gets them by fused multiply-add, tokens
// ascending.
func AttendBlock(acc []float32, accStride int, state []Softmax, q []float32, qStride, headDim int, block KVBlock,
	counts []int, scale float32) {
	for r, n := range counts {
		if n < 0 || n > BlockTokens {
			panic(fmt.Sprintf("kernels: row %d sees %d tokens of a block of %d", r, n, BlockTokens))
		}
	}
	attendBlock(acc, accStride, state[:len(counts)], q, qStride, headDim, block, counts, scale)
}

// attendBlockPlain is the definition of AttendBlock.
func attendBlockPlain(acc []float32, accStride int, state []Softmax, q []float32, qStride, headDim int, block KVBlock,
	counts []int, factor float32) {
	s := takeScratch()
	for r, n := range counts {
		if n == 0 {
			continue
		}
		weights := s.row(n)
		for t := range weights {
			weights[t] = 0
			for d, v := range q[r*qStride:][:headDim] {
				weights[t] = fma32(v, block.Keys[d*BlockTokens+t], weights[t])
			}
		}
		out := acc[r*accStride:][:headDim]
		state[r].weigh(weights, out, factor)
		for t, p := range weights {
			value := block.Values[t*block.ValueStride:][:headDim]
			for d := range out {
				out[d] = fma32(p, value[d], out[d])
			}
		}
	}
	s.give()
}

// weigh turns dots into softmax weights against the new maximum, and corrects what was summed against the old one.
func (s *Softmax) weigh(dots, acc []float32, factor float32) {
	scale(dots, dots, factor)
	top := max(s.Max, largest(dots))
	correct := exp32(s.Max - top)
	s.Sum = fma32(s.Sum, correct, expSum(dots, top))
	s.Max = top
	scale(acc, acc, correct)
}

// FinishAttention divides the rows by their sums: dst[r·dstStride:][:headDim] = acc row / Sum. dst may be acc.
func FinishAttention(dst []float32, dstStride int, acc []float32, accStride, headDim int, state []Softmax) {
	for r := range state {
		d, a := dst[r*dstStride:][:headDim], acc[r*accStride:][:headDim]
		divide(d, a, state[r].Sum)
	}
}

package kernels

import (
	"fmt"
	"math"
	"testing"
)

// attend runs rows queries over blocks of random keys and values; row r sees tokens [0, first+r]. cut calls AttendBlock
// for so many rows at a time.
func attend(t *testing.T, rows, first, headDim, cut int) []float32 {
	t.Helper()
	r := newRand(uint64(headDim))
	q := guarded(t, rows*headDim)
	copy(q, randomVector(r, rows*headDim))
	acc, state := guarded(t, rows*headDim), make([]Softmax, rows)
	ResetAttention(acc, headDim, headDim, state)
	tokens := first + rows
	for start := 0; start < tokens; start += BlockTokens {
		b := KVBlock{Keys: guarded(t, headDim*BlockTokens), Values: guarded(t, BlockTokens*headDim),
			ValueStride: headDim}
		nan := float32(math.NaN())
		for i := range b.Keys {
			b.Keys[i], b.Values[i] = nan, nan
		}
		for i := 0; i < BlockTokens && start+i < tokens; i++ {
			StoreKey(b.Keys, i, randomVector(r, headDim))
			copy(b.Values[i*headDim:], randomVector(r, headDim))
		}
		counts := make([]int, rows)
		for i := range counts {
			counts[i] = max(0, min(BlockTokens, first+i+1-start))
		}
		for lo := 0; lo < rows; lo += cut {
			hi := min(rows, lo+cut)
			AttendBlock(acc[lo*headDim:], headDim, state[lo:hi], q[lo*headDim:], headDim, headDim, b, counts[lo:hi],
				0.125)
		}
	}
	FinishAttention(acc, headDim, acc, headDim, headDim, state)
	return acc
}

// A row's result does not depend on the grouping, the instruction set, or the contents of unwritten places.
func TestAttentionIsScheduleInvariant(t *testing.T) {
	for _, headDim := range []int{8, 24, 64, 128, 256} {
		for _, shape := range [][2]int{{1, 0}, {1, 300}, {7, 252}, {60, 0}, {100, 230}} {
			rows, first := shape[0], shape[1]
			if headDim > 64 && rows > 7 {
				continue // plain FMA takes long here and shows nothing new
			}
			before := Active()
			Use(Plain)
			want := attend(t, rows, first, headDim, rows)
			Use(before)
			onEach(t, func(t *testing.T) {
				for _, cut := range []int{1, 5, rows} {
					if Active() != Plain || cut == 5 {
						wantSame(t, fmt.Sprintf("head_dim %d, %d rows after %d, %d at a time", headDim, rows, first,
							cut),
							attend(t, rows, first, headDim, cut), want)
					}
				}
			})
		}
	}
}

func TestAttentionFollowsFormulas(t *testing.T) {
	const headDim, tokens, scale = 32, 300, 0.125
	r := newRand(8)
	q, keys, values := randomVector(r, headDim), randomVector(r, tokens*headDim), randomVector(r, tokens*headDim)
	want, sum := make([]float64, headDim), 0.0
	for i := range tokens {
		var dot float64
		for d := range headDim {
			dot += float64(q[d]) * float64(keys[i*headDim+d])
		}
		p := math.Exp(dot * scale)
		sum += p
		for d := range headDim {
			want[d] += p * float64(values[i*headDim+d])
		}
	}
	onEach(t, func(t *testing.T) {
		acc, state := make([]float32, headDim), make([]Softmax, 1)
		ResetAttention(acc, headDim, headDim, state)
		for start := 0; start < tokens; start += BlockTokens {
			n := min(BlockTokens, tokens-start)
			b := KVBlock{Keys: make([]float32, headDim*BlockTokens), Values: values[start*headDim:],
				ValueStride: headDim}
			for i := range n {
				StoreKey(b.Keys, i, keys[(start+i)*headDim:][:headDim])
			}
			AttendBlock(acc, headDim, state, q, headDim, headDim, b, []int{n}, scale)
		}
		FinishAttention(acc, headDim, acc, headDim, headDim, state)
		for d := range acc {
			if math.Abs(float64(acc[d])-want[d]/sum) > 1e-5 {
				t.Errorf("[%d] = %v, want %v", d, acc[d], want[d]/sum)
			}
		}
	})
}

func TestNaNQueryStaysInItsRow(t *testing.T) {
	const headDim, rows = 64, 9
	r := newRand(9)
	b := KVBlock{Keys: randomVector(r, headDim*BlockTokens), Values: randomVector(r, headDim*BlockTokens),
		ValueStride: headDim}
	q := randomVector(r, rows*headDim)
	counts := []int{9, 9, 9, 10, 11, 12, 13, 256, 256}
	run := func() []float32 {
		acc, state := make([]float32, rows*headDim), make([]Softmax, rows)
		ResetAttention(acc, headDim, headDim, state)
		AttendBlock(acc, headDim, state, q, headDim, headDim, b, counts, 1)
		FinishAttention(acc, headDim, acc, headDim, headDim, state)
		return acc
	}
	onEach(t, func(t *testing.T) {
		clean := run()
		old := q[4*headDim+3]
		q[4*headDim+3] = float32(math.NaN())
		dirty := run()
		q[4*headDim+3] = old
		for i := range dirty {
			if bad := dirty[i] != dirty[i]; bad != (i/headDim == 4) || !bad && !same(dirty[i], clean[i]) {
				t.Fatalf("row %d is %v, without the NaN %v", i/headDim, dirty[i], clean[i])
			}
		}
	})
}

// A window that begins inside a page, at the end of the pool.
func TestAttentionOfAPartialBlockStaysInside(t *testing.T) {
	const headDim, rows = 32, 3
	r := newRand(10)
	whole := KVBlock{Keys: guarded(t, headDim*BlockTokens), Values: guarded(t, headDim*BlockTokens),
		ValueStride: headDim}
	copy(whole.Keys, randomVector(r, headDim*BlockTokens))
	copy(whole.Values, randomVector(r, headDim*BlockTokens))
	q := randomVector(r, rows*headDim)
	for _, from := range []int{1, 15, 16, 100, 250, 255} {
		for _, n := range []int{1, 16, 17, BlockTokens - from} {
			if from+n > BlockTokens {
				continue
			}
			counts := []int{n, n, max(1, n-1)}
			run := func() []float32 {
				acc, state := make([]float32, rows*headDim), make([]Softmax, rows)
				ResetAttention(acc, headDim, headDim, state)
				cut := KVBlock{Keys: whole.Keys[from:], Values: whole.Values[from*headDim:], ValueStride: headDim}
				AttendBlock(acc, headDim, state, q, headDim, headDim, cut, counts, 0.25)
				return acc
			}
			before := Active()
			Use(Plain)
			want := run()
			Use(before)
			onEach(t, func(t *testing.T) { wantSame(t, fmt.Sprintf("%d tokens from %d", n, from), run(), want) })
		}
	}
}

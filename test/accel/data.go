//go:build linux

package main

import (
	"math/rand/v2"
	"sync"
)

// What the kernels are timed on is drawn, not one value all over: equal keys would never raise a maximum, and equal
// bits cost less power.

// noise is 16 MB of random bits.
var noise = sync.OnceValue(func() []uint64 {
	block := make([]uint64, 2<<20)
	random := rand.New(rand.NewPCG(2, 2))
	for i := range block {
		block[i] = random.Uint64()
	}
	return block
})

// queries are n values around 0 with a standard deviation of 1.
func queries(n int) []float32 {
	random := rand.New(rand.NewPCG(3, 3))
	q := make([]float32, n)
	for i := range q {
		q[i] = float32(random.NormFloat64())
	}
	return q
}

// logits are a row of the 27B's.
var logits = sync.OnceValue(func() []float32 { return queries(logitCols) })

// pagesOf are 32 pages of keys or values: f16 between 0.5 and 1 in size, or codes with scale 0.01 and bias -1.28.
func pagesOf(heads, dim int, q8 bool) []uint64 {
	const pages, positions = 32, 256
	if !q8 {
		block := make([]uint64, pages*heads*positions*dim/4)
		for i := range block {
			block[i] = noise()[i%len(noise())]&0x83ff83ff83ff83ff | 0x3800380038003800
		}
		return block
	}
	var block []uint64
	for page := range pages {
		codes := heads * positions * dim / 8
		from := page * codes % (len(noise()) - codes)
		block = append(block, noise()[from:from+codes]...)
		for range heads * positions * dim / 64 / 2 {
			block = append(block, 0xbfa43c24bfa43c24)
		}
	}
	return block
}

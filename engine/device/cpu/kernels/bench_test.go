package kernels

import (
	"fmt"
	"sync"
	"testing"
)

// benchEach runs a benchmark on every vector set of this machine and 1 and 2 workers.
func benchEach(b *testing.B, f func(b *testing.B, workers int)) {
	before := Active()
	defer Use(before)
	for _, i := range []ISA{AVX2, AVX512, NEON} {
		if Use(i) != nil {
			continue
		}
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/workers=%d", i, workers), func(b *testing.B) { f(b, workers) })
		}
	}
}

func share(workers int, f func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < workers; i++ {
		wg.Go(func() { f(i) })
	}
	f(0)
	wg.Wait()
}

// syntheticQ4 is a 4-bit matrix with groups of 64 and any content.
func syntheticQ4(b *testing.B, out, in int) *Matrix {
	b.Helper()
	a := Affine{Out: out, In: in, Bits: 4, Group: 64, ScaleType: BF16, Codes: make([]byte, out*in/2),
		Scales: make([]byte, out*in/32), Biases: make([]byte, out*in/32)}
	for i := range a.Codes {
		a.Codes[i] = byte(i * 167 >> 3)
	}
	for i := 0; i < len(a.Scales); i += 2 {
		a.Scales[i+1], a.Biases[i+1] = 0x3c, 0xbc
	}
	m, err := PackAffine(a)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkGEMV300MB reads a matrix far larger than the caches. BenchmarkRead300MB is the plain read to compare with.
func BenchmarkGEMV300MB(b *testing.B) {
	const in, out = 4096, 130560
	m := syntheticQ4(b, out, in)
	for _, rows := range []int{1, 2, 4} {
		x, y := make([]float32, rows*in), make([]float32, rows*out)
		for i := range x {
			x[i] = float32(i%13) - 6
		}
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			benchEach(b, func(b *testing.B, workers int) {
				b.SetBytes(int64(m.Bytes()))
				for b.Loop() {
					share(workers, func(i int) {
						lo, hi := m.Split(workers, i)
						m.Mul(y, out, x, in, rows, lo, hi)
					})
				}
			})
		})
	}
	b.Run("read", func(b *testing.B) {
		benchEach(b, func(b *testing.B, workers int) {
			b.SetBytes(int64(m.Bytes()))
			w := m.words
			for b.Loop() {
				share(workers, func(i int) { readAll(w[len(w)*i/workers : len(w)*(i+1)/workers]) })
			}
		})
	})
}

// Pocket's shapes and a middle-sized model's: GFLOP/s.
func BenchmarkGEMM(b *testing.B) {
	for _, s := range []struct{ rows, in, out int }{{512, 320, 896}, {512, 896, 320}, {512, 2560, 2560}} {
		m := syntheticQ4(b, s.out, s.in)
		x, y := make([]float32, s.rows*s.in), make([]float32, s.rows*s.out)
		b.Run(fmt.Sprintf("%dx%dx%d", s.rows, s.in, s.out), func(b *testing.B) {
			benchEach(b, func(b *testing.B, workers int) {
				for b.Loop() {
					share(workers, func(i int) {
						lo, hi := m.Split(workers, i)
						m.Mul(y, s.out, x, s.in, s.rows, lo, hi)
					})
				}
				b.ReportMetric(2*float64(s.rows)*float64(s.in)*float64(s.out)*float64(b.N)/b.Elapsed().Seconds()/1e9,
					"GFLOP/s")
			})
		})
	}
}

// A matrix that stays in the second-level cache, as Pocket's do in decode.
func BenchmarkGEMVPocket(b *testing.B) {
	for _, s := range []struct{ in, out int }{{320, 1792}, {896, 320}, {320, 8}} {
		m := syntheticQ4(b, s.out, s.in)
		x, y := make([]float32, s.in), make([]float32, s.out)
		b.Run(fmt.Sprintf("%dx%d", s.in, s.out), func(b *testing.B) {
			benchEach(b, func(b *testing.B, workers int) {
				if workers > 1 {
					b.Skip("one worker shows the kernel; two would show the start of goroutines")
				}
				b.SetBytes(int64(m.Bytes()))
				for b.Loop() {
					m.Mul(y, s.out, x, s.in, 1, 0, s.out)
				}
			})
		})
	}
}

// The loops beside the matrix products, for Pocket: one call a token and layer, or a head and token.
func BenchmarkVector(b *testing.B) {
	r := newRand(1)
	x, y, z := randomVector(r, 1024), randomVector(r, 1024), make([]float32, 1024)
	state, out := randomVector(r, 128*128), make([]float32, 128)
	conv := randomVector(r, 4*512)
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"SiluMul896", func() { SiluMul(z[:896], x, y) }},
		{"RMSNorm320", func() { RMSNorm(z, x[:320], y, 1e-6) }},
		{"RMSNormGated32", func() { RMSNormGated(z, x[:32], y, x[32:], 1e-6) }},
		{"ConvSilu512", func() { ConvSilu(z, conv, x[:512], y[:512], x[:512], y[:512]) }},
		{"DeltaStep32x32", func() { DeltaStep(state[:1024], 0.9, 0.1, x[:32], y[:32], x[32:64], out) }},
		{"DeltaStep128x128", func() { DeltaStep(state, 0.9, 0.1, x[:128], y[:128], x[128:256], out) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchEach(b, func(b *testing.B, workers int) {
				if workers > 1 {
					b.Skip("one worker shows the kernel")
				}
				for b.Loop() {
					c.run()
				}
			})
		})
	}
}

// One KV head of a page: prefill rows and one decode row. GFLOP/s.
func BenchmarkAttendBlock(b *testing.B) {
	r := newRand(1)
	for _, s := range []struct{ rows, headDim int }{{1, 64}, {64, 64}, {1, 256}, {64, 256}} {
		block := KVBlock{Keys: randomVector(r, s.headDim*BlockTokens), Values: randomVector(r, s.headDim*BlockTokens),
			ValueStride: s.headDim}
		q, acc, state := randomVector(r, s.rows*s.headDim), make([]float32, s.rows*s.headDim), make([]Softmax, s.rows)
		counts := make([]int, s.rows)
		for i := range counts {
			counts[i] = BlockTokens
		}
		b.Run(fmt.Sprintf("%dx%d", s.rows, s.headDim), func(b *testing.B) {
			benchEach(b, func(b *testing.B, workers int) {
				if workers > 1 {
					b.Skip("one worker shows the kernel")
				}
				ResetAttention(acc, s.headDim, s.headDim, state)
				for b.Loop() {
					AttendBlock(acc, s.headDim, state, q, s.headDim, s.headDim, block, counts, 0.01)
				}
				b.ReportMetric(4*float64(s.rows*s.headDim*BlockTokens)*float64(b.N)/b.Elapsed().Seconds()/1e9,
					"GFLOP/s")
			})
		})
	}
}

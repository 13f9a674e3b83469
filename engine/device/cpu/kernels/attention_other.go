//go:build !amd64 && !arm64

package kernels

func attendBlock(acc []float32, accStride int, state []Softmax, q []float32, qStride, headDim int, block KVBlock,
	counts []int, factor float32) {
	attendBlockPlain(acc, accStride, state, q, qStride, headDim, block, counts, factor)
}

//go:build !amd64 && !arm64

package kernels

func (m *Matrix) mul(y []float32, yStride int, x []float32, xStride int, rows, outLo, outHi int) {
	m.mulPlain(y, yStride, x, xStride, rows, outLo, outHi)
}

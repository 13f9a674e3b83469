//go:build !amd64

package kernels

func vector(elementwise, *vectorArgs) bool { return false }

func dot(a, b []float32) float32 { return dotPlain(a, b) }

func largest(x []float32) float32 { return largestPlain(x) }

func expSum(x []float32, top float32) float32 { return expSumPlain(x, top) }

func deltaStep(state []float32, alpha, beta float32, q, k, v, out []float32) {
	deltaStepPlain(state, alpha, beta, q, k, v, out)
}

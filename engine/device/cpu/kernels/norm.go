package kernels

import "math"

// RMSNorm writes x[i]·s·w[i] to dst[i] for all i of x, s = 1/√(mean(x²) + eps); the product is rounded after each
// factor. w holds the full factors (1 + w where the checkpoint stores them zero-centred). dst may be x.
func RMSNorm(dst, x, w []float32, eps float32) {
	n := len(x)
	dst, w = dst[:n], w[:n]
	scaleMul(dst, x, w, rmsScale(x, eps))
}

// RMSNormGated writes RMSNorm(x, w)[i]·silu(z[i]) to dst[i]: the gated norm of one value head. dst may be x or z.
func RMSNormGated(dst, x, w, z []float32, eps float32) {
	n := len(x)
	dst, w, z = dst[:n], w[:n], z[:n]
	s := rmsScale(x, eps)
	if vector(opScaleMulSilu, &vectorArgs{dst: pointer(dst), x0: pointer(x), x1: pointer(w), x2: pointer(z), n: n,
		s: s}) {
		return
	}
	for i, v := range x {
		t := v * s
		t = t * w[i]
		dst[i] = silu32(z[i]) * t
	}
}

// L2Norm writes x[i]·s to dst[i] for all i of x, s = factor/√(Σx² + eps) (Hugging Face's form of the query and key norm
// of the delta rule). dst may be x.
func L2Norm(dst, x []float32, eps, factor float32) {
	dst = dst[:len(x)]
	sum := Dot(x, x)
	s := float32(float64(factor) / math.Sqrt(float64(sum)+float64(eps)))
	scale(dst, x, s)
}

func rmsScale(x []float32, eps float32) float32 {
	mean := float64(Dot(x, x)) / float64(len(x))
	return float32(1 / math.Sqrt(mean+float64(eps)))
}

func scaleMul(dst, x, w []float32, s float32) {
	if vector(opScaleMul, &vectorArgs{dst: pointer(dst), x0: pointer(x), x1: pointer(w), n: len(x), s: s}) {
		return
	}
	for i, v := range x {
		t := v * s
		dst[i] = t * w[i]
	}
}

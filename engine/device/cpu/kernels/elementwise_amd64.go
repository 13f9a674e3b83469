package kernels

import "unsafe"

// vector runs an elementwise kernel, and reports false when only the plain form is in use.
func vector(op elementwise, a *vectorArgs) bool {
	args := (*byte)(unsafe.Pointer(a))
	switch active {
	case AVX512:
		switch op {
		case opExp:
			expAVX512(args)
		case opSigmoid:
			sigmoidAVX512(args)
		case opSilu:
			siluAVX512(args)
		case opSiluMul:
			siluMulAVX512(args)
		case opSigmoidMul:
			sigmoidMulAVX512(args)
		case opScaleMul:
			scaleMulAVX512(args)
		case opScaleMulSilu:
			scaleMulSiluAVX512(args)
		case opScale:
			scaleAVX512(args)
		case opDivide:
			divideAVX512(args)
		case opAdd:
			addAVX512(args)
		case opConvSilu:
			convSiluAVX512(args)
		}
	case AVX2:
		switch op {
		case opExp:
			expAVX2(args)
		case opSigmoid:
			sigmoidAVX2(args)
		case opSilu:
			siluAVX2(args)
		case opSiluMul:
			siluMulAVX2(args)
		case opSigmoidMul:
			sigmoidMulAVX2(args)
		case opScaleMul:
			scaleMulAVX2(args)
		case opScaleMulSilu:
			scaleMulSiluAVX2(args)
		case opScale:
			scaleAVX2(args)
		case opDivide:
			divideAVX2(args)
		case opAdd:
			addAVX2(args)
		case opConvSilu:
			convSiluAVX2(args)
		}
	default:
		return false
	}
	return true
}

func dot(x, y []float32) float32 {
	a := sumArgs{x: pointer(x), y: pointer(y), n: len(x)}
	args := (*byte)(unsafe.Pointer(&a))
	switch active {
	case AVX512:
		dotAVX512(args)
	case AVX2:
		dotAVX2(args)
	default:
		return dotPlain(x, y)
	}
	return a.out
}

func largest(x []float32) float32 {
	a := sumArgs{x: pointer(x), n: len(x)}
	args := (*byte)(unsafe.Pointer(&a))
	switch active {
	case AVX512:
		maxAVX512(args)
	case AVX2:
		maxAVX2(args)
	default:
		return largestPlain(x)
	}
	return a.out
}

func expSum(x []float32, top float32) float32 {
	a := expSumArgs{x: pointer(x), top: top, n: len(x)}
	args := (*byte)(unsafe.Pointer(&a))
	switch active {
	case AVX512:
		expSumAVX512(args)
	case AVX2:
		expSumAVX2(args)
	default:
		return expSumPlain(x, top)
	}
	return a.out
}

func deltaStep(state []float32, alpha, beta float32, q, k, v, out []float32) {
	a := deltaArgs{state: pointer(state), q: pointer(q), k: pointer(k), v: pointer(v), out: pointer(out),
		alpha: alpha, beta: beta, dv: len(v), dk: len(k)}
	args := (*byte)(unsafe.Pointer(&a))
	switch {
	case len(v) == 0 || active == Plain:
		deltaStepPlain(state, alpha, beta, q, k, v, out)
	case active == AVX512:
		deltaAVX512(args)
	default:
		deltaAVX2(args)
	}
}

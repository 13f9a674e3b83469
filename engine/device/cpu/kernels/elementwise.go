package kernels

import "unsafe"

// vectorArgs are the arguments of the elementwise assembly kernels; the generator knows the fields by their order.
type vectorArgs struct {
	dst, x0, x1, x2, x3 unsafe.Pointer // rows of n float32
	w                   unsafe.Pointer // planes of n float32
	n                   int
	s                   float32
	_                   float32
}

func pointer(x []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

// elementwise names a kernel that works element by element.
type elementwise int

const (
	opExp elementwise = iota
	opSigmoid
	opSilu
	opSiluMul
	opSigmoidMul
	opScaleMul
	opScaleMulSilu
	opScale
	opDivide
	opAdd
	opConvSilu
)

// scale writes x[i]·s to dst[i].
func scale(dst, x []float32, s float32) {
	if vector(opScale, &vectorArgs{dst: pointer(dst), x0: pointer(x), n: len(x), s: s}) {
		return
	}
	for i, v := range x {
		dst[i] = v * s
	}
}

// divide writes x[i]/s to dst[i].
func divide(dst, x []float32, s float32) {
	if vector(opDivide, &vectorArgs{dst: pointer(dst), x0: pointer(x), n: len(x), s: s}) {
		return
	}
	for i, v := range x {
		dst[i] = v / s
	}
}

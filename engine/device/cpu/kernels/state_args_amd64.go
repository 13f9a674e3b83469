package kernels

import "unsafe"

// sumArgs are the arguments of dot and max, in the layout that the assembly reads.
type sumArgs struct {
	x, y unsafe.Pointer
	n    int
	out  float32
}

// expSumArgs are the arguments of expSum.
type expSumArgs struct {
	x   unsafe.Pointer
	top float32
	_   float32
	n   int
	out float32
}

// deltaArgs are the arguments of delta.
type deltaArgs struct {
	state, q, k, v, out unsafe.Pointer
	alpha               float32
	_                   float32
	beta                float32
	_                   float32
	dv, dk              int
}

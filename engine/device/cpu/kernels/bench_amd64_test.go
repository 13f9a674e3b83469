package kernels

import "unsafe"

// readAll reads w, but for at most 255 bytes, as fast as the processor can.
func readAll(w []uint32) {
	e := expandArgs{src: unsafe.Pointer(&w[0]), groups: len(w) / 64}
	if active == AVX512 {
		readAVX512((*byte)(unsafe.Pointer(&e)))
	} else {
		readAVX2((*byte)(unsafe.Pointer(&e)))
	}
}

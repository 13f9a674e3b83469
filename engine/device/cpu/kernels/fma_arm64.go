package kernels

// fma32 returns a*b + c rounded once to float32. On arm64 the compiler turns this expression into FMADDS;
// TestFMARoundsOnce fails where it does not. The conversion of c keeps it from fusing a product that a caller passes as
// c.
func fma32(a, b, c float32) float32 { return a*b + float32(c) }

package kernels

// fma32 returns a*b + c rounded once to float32. On arm64 the compiler turns this expression into FMADDS;
// TestFMARoundsOnce fails where it does not. A caller whose c is itself a product converts it explicitly, or the compiler
// might fuse that one instead.
func fma32(a, b, c float32) float32 { return a*b + c }

package kernels

// ConvSilu is the depthwise causal convolution with 4 taps and its silu, one token:
//
//	dst[c] = silu(w[0·C+c]·u0[c] + w[1·C+c]·u1[c] + w[2·C+c]·u2[c] + w[3·C+c]·u3[c]),   C = len(u3)
//
// w [4][C] holds the taps as planes (the checkpoint's [C][4] transposed), u3 is the current row before
// the convolution, u2, u1, u0 the rows before it (zeros at the start). The sum is u0's product, then three fused
// multiply-adds. dst may be any of the rows.
func ConvSilu(dst, w, u0, u1, u2, u3 []float32) {
	c := len(u3)
	dst, u0, u1, u2 = dst[:c], u0[:c], u1[:c], u2[:c]
	if vector(opConvSilu, &vectorArgs{dst: pointer(dst), x0: pointer(u0), x1: pointer(u1), x2: pointer(u2),
		x3: pointer(u3), w: pointer(w[:4*c]), n: c}) {
		return
	}
	w0, w1, w2, w3 := w[:c], w[c:2*c], w[2*c:3*c], w[3*c:4*c]
	for i := range u3 {
		t := float32(w0[i] * u0[i])
		t = fma32(w1[i], u1[i], t)
		t = fma32(w2[i], u2[i], t)
		t = fma32(w3[i], u3[i], t)
		dst[i] = silu32(t)
	}
}

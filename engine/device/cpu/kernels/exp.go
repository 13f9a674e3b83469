package kernels

// Constants of exp. The polynomial is (e^r - 1)/r interpolated at the 6 Chebyshev nodes of |r| <= ln2/2; ln2 is split
// so that n·expLn2Hi is exact for |n| < 256.
const (
	expLo    = -104.0 // below it the result is 0
	expHi    = 89.0   // above it the result is +Inf
	expLog2E = 1.44269504088896341
	expMagic = 12582912.0 // 1.5·2^23: adding it rounds to an integer
	expLn2Hi = 0.693145751953125
	expLn2Lo = 1.42860682030941723212e-06
	expC1    = 1.000000011
	expC2    = 0.5000000014
	expC3    = 0.1666650461
	expC4    = 0.0416664642
	expC5    = 0.008369220292
	expC6    = 0.001393373072
)

// exp32 returns e^x: within 1 ulp of the true value over all float32 (TestExpError samples them), 1 at 0, +Inf above
// 88.72, 0 below -103.98, subnormal results included; NaN for NaN.
func exp32(x float32) float32 {
	if x < expLo {
		x = expLo
	}
	if x > expHi {
		x = expHi
	}
	z := fma32(x, expLog2E, expMagic)
	n := z - expMagic
	r := fma32(n, -expLn2Hi, x)
	r = fma32(n, -expLn2Lo, r)
	q := fma32(expC6, r, expC5)
	q = fma32(q, r, expC4)
	q = fma32(q, r, expC3)
	q = fma32(q, r, expC2)
	q = fma32(q, r, expC1)
	p := fma32(q, r, 1)
	k := int32(float32bits(z)) - int32(0x4b400000)
	k1 := k >> 1
	k2 := k - k1
	p = p * float32frombits(uint32(k1+127)<<23)
	return float32(p * float32frombits(uint32(k2+127)<<23))
}

func sigmoid32(x float32) float32 { return 1 / (1 + exp32(-x)) }

func silu32(x float32) float32 { return x / (1 + exp32(-x)) }

// Exp writes e^x[i] to dst[i] for all i of x. dst may be x. Error at most 1 ulp; see exp32 for the ends of the range.
func Exp(dst, x []float32) {
	dst = dst[:len(x)]
	if vector(opExp, &vectorArgs{dst: pointer(dst), x0: pointer(x), n: len(x)}) {
		return
	}
	for i, v := range x {
		dst[i] = exp32(v)
	}
}

// Sigmoid writes 1/(1+e^-x[i]) to dst[i] for all i of x. dst may be x.
func Sigmoid(dst, x []float32) {
	dst = dst[:len(x)]
	if vector(opSigmoid, &vectorArgs{dst: pointer(dst), x0: pointer(x), n: len(x)}) {
		return
	}
	for i, v := range x {
		dst[i] = sigmoid32(v)
	}
}

// Silu writes x[i]/(1+e^-x[i]) to dst[i] for all i of x. dst may be x.
func Silu(dst, x []float32) {
	dst = dst[:len(x)]
	if vector(opSilu, &vectorArgs{dst: pointer(dst), x0: pointer(x), n: len(x)}) {
		return
	}
	for i, v := range x {
		dst[i] = silu32(v)
	}
}

// SiluMul writes silu(gate[i])·up[i] to dst[i] for all i of gate. dst may be either.
func SiluMul(dst, gate, up []float32) {
	dst, up = dst[:len(gate)], up[:len(gate)]
	if vector(opSiluMul, &vectorArgs{dst: pointer(dst), x0: pointer(gate), x1: pointer(up), n: len(gate)}) {
		return
	}
	for i, v := range gate {
		dst[i] = silu32(v) * up[i]
	}
}

// SigmoidMul writes x[i]·sigmoid(gate[i]) to dst[i] for all i of x. dst may be either.
func SigmoidMul(dst, x, gate []float32) {
	dst, gate = dst[:len(x)], gate[:len(x)]
	if vector(opSigmoidMul, &vectorArgs{dst: pointer(dst), x0: pointer(x), x1: pointer(gate), n: len(x)}) {
		return
	}
	for i, v := range x {
		dst[i] = v * sigmoid32(gate[i])
	}
}

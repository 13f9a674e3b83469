package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// onEach runs f once for every instruction set of this machine, and says which are missing.
func onEach(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	all := map[string][]ISA{"amd64": {Plain, AVX2, AVX512}, "arm64": {Plain, NEON}}[runtime.GOARCH]
	if all == nil {
		all = []ISA{Plain}
	}
	before := Active()
	defer Use(before)
	for _, i := range all {
		if err := Use(i); err != nil {
			t.Logf("not tested: %v", err)
			continue
		}
		t.Run(i.String(), f)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func randomVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// same says whether two floats have the same bits, any NaN being equal to any other.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func wantSame(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !same(got[i], want[i]) {
			t.Fatalf("%s: [%d] is %x (%v), want %x (%v)", what, i, math.Float32bits(got[i]), got[i],
				math.Float32bits(want[i]), want[i])
		}
	}
}

// A sample is a random matrix as a checkpoint stores it, with its weights computed by the test.
type sample struct {
	name    string
	out, in int
	weights []float32 // [out][in]
	pack    func() (*Matrix, error)
}

func encode(t DType, x []float32) (data []byte, rounded []float32) {
	for _, v := range x {
		b := math.Float32bits(v)
		switch t {
		case F32:
			data = binary.LittleEndian.AppendUint32(data, b)
		case BF16:
			data = binary.LittleEndian.AppendUint16(data, uint16(b>>16))
			v = math.Float32frombits(b &^ 0xffff)
		case F16: // normal halves with the low bits cut off, or zero
			h := uint16(0)
			if e := int(b>>23&255) - 112; e > 0 && e < 31 {
				h = uint16(b>>16&0x8000) | uint16(e)<<10 | uint16(b>>13&0x3ff)
			}
			data = binary.LittleEndian.AppendUint16(data, h)
			v = halfByValue(h)
		}
		rounded = append(rounded, v)
	}
	return
}

// halfByValue is the value of a finite half by its definition.
func halfByValue(h uint16) float32 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	e, f := int(h>>10&31), float64(h&0x3ff)
	if e == 0 {
		return float32(sign * math.Ldexp(f, -24))
	}
	return float32(sign * math.Ldexp(1024+f, e-25))
}

func affineSample(seed uint64, out, in, bits, group int, scaleType DType) sample {
	r := newRand(seed)
	groups := in / group
	scales, biases := make([]float32, out*groups), make([]float32, out*groups)
	for i := range scales {
		scales[i] = float32(r.NormFloat64()) / 16
		biases[i] = float32(r.NormFloat64()) / 4
	}
	a := Affine{Out: out, In: in, Bits: bits, Group: group, ScaleType: scaleType}
	a.Scales, scales = encode(scaleType, scales)
	a.Biases, biases = encode(scaleType, biases)
	weights := make([]float32, out*in)
	a.Codes = make([]byte, out*in*bits/8)
	for o := range out {
		row := a.Codes[o*in*bits/8:]
		for k := range in {
			q := r.IntN(1 << bits)
			for b := range bits {
				at := k*bits + b
				row[at/8] |= byte(q>>b&1) << (at % 8)
			}
			g := o*groups + k/group
			weights[o*in+k] = fma32(scales[g], float32(q), biases[g])
		}
	}
	return sample{fmt.Sprintf("%d-bit group %d %v scales %dx%d", bits, group, scaleType, out, in), out, in, weights,
		func() (*Matrix, error) { return PackAffine(a) }}
}

func denseSample(seed uint64, out, in int, t DType) sample {
	data, weights := encode(t, randomVector(newRand(seed), out*in))
	return sample{fmt.Sprintf("%v %dx%d", t, out, in), out, in, weights, func() (*Matrix, error) {
		return PackDense(out, in, data, t)
	}}
}

func samples() []sample {
	var list []sample
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			list = append(list, affineSample(uint64(bits), 83, 5*group, bits, group, BF16))
		}
		list = append(list, affineSample(uint64(bits), 33, 128, bits, 64, F32),
			affineSample(uint64(bits), 1, 64, bits, 64, F16))
	}
	for _, t := range []DType{F32, BF16, F16} {
		for _, shape := range [][2]int{{1, 1}, {15, 127}, {16, 128}, {17, 129}, {64, 320}, {130, 31}} {
			list = append(list, denseSample(9, shape[0], shape[1], t))
		}
	}
	return list
}

// product is Mul by its definition.
func (s sample) product(x []float32, rows int) []float32 {
	y := make([]float32, rows*s.out)
	for r := range rows {
		for o := range s.out {
			var acc float32
			for k := range s.in {
				acc = fma32(s.weights[o*s.in+k], x[r*s.in+k], acc)
			}
			y[r*s.out+o] = acc
		}
	}
	return y
}

func (s sample) matrix(t *testing.T) *Matrix {
	t.Helper()
	m, err := s.pack()
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return m
}

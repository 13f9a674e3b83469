package safetensors

import (
	"encoding/binary"
	"math"
)

// Affine4 is a matrix [out, in] in MLX's 4-bit affine form: codes [out, in/2] bytes, scales and biases [out, in/group]
// in BF16.
type Affine4 struct{ Codes, Scales, Biases []byte }

// QuantizeAffine4 quantises rows of in values, a multiple of group; row gives one into dst [in].
//
// Per group the value of the largest magnitude, the edge, is kept: scale = ±(high-low)/15, with the sign that makes the
// edge's code positive, and then edge/code; bias = edge. Codes are rounded with the scale and bias as they are stored.
// All arithmetic f32, halves to even. Source: mlx affine quantisation.
func QuantizeAffine4(out, in, group int, row func(dst []float32, r int)) Affine4 {
	groups := in / group
	q := Affine4{Codes: make([]byte, out*in/2), Scales: make([]byte, 2*out*groups), Biases: make([]byte, 2*out*groups)}
	values := make([]float32, in)
	for r := range out {
		row(values, r)
		for g := range groups {
			q.group(values[g*group:(g+1)*group], r*groups+g)
		}
	}
	return q
}

// group quantises the values of the group at this place.
func (q Affine4) group(values []float32, at int) {
	scale, bias := affine4(values)
	binary.LittleEndian.PutUint16(q.Scales[2*at:], BF16Of(scale))
	binary.LittleEndian.PutUint16(q.Biases[2*at:], BF16Of(bias))
	scale, bias = OfBF16(BF16Of(scale)), OfBF16(BF16Of(bias))
	codes := q.Codes[at*len(values)/2 : (at+1)*len(values)/2]
	for i, v := range values {
		code := min(15, max(0, math.RoundToEven(float64((v-bias)/scale))))
		codes[i/2] |= byte(code) << (i % 2 * 4)
	}
}

// affine4 is the scale and the bias of a group.
func affine4(values []float32) (scale, bias float32) {
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	scale = max((high-low)/15, 1e-7)
	edge := low
	if float32(math.Abs(float64(low))) <= float32(math.Abs(float64(high))) {
		scale, edge = -scale, high
	}
	if code := float32(math.RoundToEven(float64(edge / scale))); code != 0 {
		return edge / code, edge
	}
	return scale, 0
}

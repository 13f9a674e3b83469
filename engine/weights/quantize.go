package weights

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Quantize4 gives a float matrix [Out, In] in MLX's 4-bit affine form, In a multiple of group, with scales and biases
// in BF16. The result owns its memory.
//
// Per group the value of the largest magnitude, the edge, is kept: scale = ±(high-low)/15, with the sign that makes the
// edge's code positive, and then edge/code; bias = edge. Codes are rounded with the scale and bias as they are stored.
// All arithmetic f32, halves to even. Source: mlx affine quantisation.
func Quantize4(m Matrix, group int) (Matrix, error) {
	if m.Bits > 0 {
		return m, nil
	}
	if m.In%group != 0 || !validGroup(group) {
		return m, fmt.Errorf("%s: rows of %d cannot be quantised in groups of %d", m.Name, m.In, group)
	}
	groups := m.In / group
	q := Matrix{Name: m.Name, Out: m.Out, In: m.In, Bits: 4, Group: group, ScaleDType: BF16,
		Data: make([]byte, m.Out*m.In/2), Scales: make([]byte, 2*m.Out*groups), Biases: make([]byte, 2*m.Out*groups)}
	row := make([]float32, m.In)
	for r := range m.Out {
		m.Row(row, r)
		for g := range groups {
			values, at := row[g*group:(g+1)*group], r*groups+g
			scale, bias := affine4(values)
			binary.LittleEndian.PutUint16(q.Scales[2*at:], BF16Of(scale))
			binary.LittleEndian.PutUint16(q.Biases[2*at:], BF16Of(bias))
			scale, bias = OfBF16(BF16Of(scale)), OfBF16(BF16Of(bias))
			codes := q.Data[at*group/2 : (at+1)*group/2]
			for i, v := range values {
				code := min(15, max(0, math.RoundToEven(float64((v-bias)/scale))))
				codes[i/2] |= byte(code) << (i % 2 * 4)
			}
		}
	}
	return q, nil
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

// BF16Of rounds a finite value to BF16, halves to even.
func BF16Of(v float32) uint16 {
	bits := math.Float32bits(v)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// OfBF16 is the value of a BF16.
func OfBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

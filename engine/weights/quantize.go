package weights

import (
	"fmt"

	"slipway/safetensors"
)

// Quantize4 gives a float matrix [Out, In] in MLX's 4-bit affine form, In a multiple of group, with scales and biases
// in BF16. The result owns its memory.
func Quantize4(m Matrix, group int) (Matrix, error) {
	if m.Bits > 0 {
		return m, nil
	}
	if m.In%group != 0 || !validGroup(group) {
		return m, fmt.Errorf("%s: rows of %d cannot be quantised in groups of %d", m.Name, m.In, group)
	}
	q := safetensors.QuantizeAffine4(m.Out, m.In, group, m.Row)
	return Matrix{Name: m.Name, Out: m.Out, In: m.In, Bits: 4, Group: group, ScaleDType: BF16, Data: q.Codes,
		Scales: q.Scales, Biases: q.Biases}, nil
}

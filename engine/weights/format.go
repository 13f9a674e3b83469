package weights

import "slipway/safetensors"

// What a checkpoint's files are made of.
type (
	DType       = safetensors.DType
	Entry       = safetensors.Entry
	MisfitError = safetensors.MisfitError // every error of this package about content is one
)

// The types that a text model can use.
const (
	F32  = safetensors.F32
	F16  = safetensors.F16
	BF16 = safetensors.BF16
	U32  = safetensors.U32
)

// Floats appends n little-endian elements of float type t to dst, converted exactly to float32.
func Floats(dst []float32, t DType, data []byte) []float32 { return safetensors.Floats(dst, t, data) }

// BF16Of rounds a finite value to BF16, halves to even.
func BF16Of(v float32) uint16 { return safetensors.BF16Of(v) }

// OfBF16 is the value of a BF16.
func OfBF16(b uint16) float32 { return safetensors.OfBF16(b) }

func misfit(file, tensor, found, wanted string) error {
	return safetensors.Misfit(file, tensor, found, wanted)
}

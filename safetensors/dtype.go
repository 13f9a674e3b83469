package safetensors

import (
	"encoding/binary"
	"math"
)

// DType is a safetensors element type by its name in the file.
type DType string

// The types that a text model can use. Others are carried by ReadHeader and refused where they are asked for.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	U32  DType = "U32"
)

// bytesOf maps every type name of the safetensors format to its size in bytes. Sub-byte types are not in it: no
// checkpoint of this family has them.
var bytesOf = map[DType]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1,
	"U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4,
	"U64": 8, "I64": 8, "F64": 8, "C64": 8,
}

// Bytes is the size of an element; 0 for a type that the format does not have.
func (t DType) Bytes() int64 { return bytesOf[t] }

// IsFloat reports whether the type is one that this package converts to float32.
func (t DType) IsFloat() bool { return t == F32 || t == F16 || t == BF16 }

// Floats converts n little-endian elements of type t to float32 (exact for all three types) and appends them to dst.
// t must be a float type.
func Floats(dst []float32, t DType, data []byte) []float32 {
	switch t {
	case F32:
		for i := 0; i+4 <= len(data); i += 4 {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
		}
	case BF16:
		for i := 0; i+2 <= len(data); i += 2 {
			dst = append(dst, math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[i:]))<<16))
		}
	case F16:
		for i := 0; i+2 <= len(data); i += 2 {
			dst = append(dst, HalfToFloat(binary.LittleEndian.Uint16(data[i:])))
		}
	default:
		panic("safetensors: Floats of " + string(t))
	}
	return dst
}

// BF16Of rounds a finite value to BF16, halves to even.
func BF16Of(v float32) uint16 {
	bits := math.Float32bits(v)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// OfBF16 is the value of a BF16.
func OfBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// HalfToFloat widens an IEEE binary16, subnormals, infinities and NaN included.
func HalfToFloat(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 31
	mantissa := uint32(h & 1023)
	switch {
	case exponent == 31:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	case exponent == 0:
		value := float32(mantissa) / (1 << 24) // exact: a subnormal half is mantissa·2^-24
		return math.Float32frombits(math.Float32bits(value) | sign)
	default:
		return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
	}
}

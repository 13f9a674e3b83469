package kernels

import (
	"encoding/binary"
	"math"
)

// DType is the type of stored numbers.
type DType int

const (
	F32 DType = iota
	BF16
	F16
)

// Size returns the bytes of one number.
func (t DType) Size() int {
	if t == F32 {
		return 4
	}
	return 2
}

func (t DType) String() string {
	switch t {
	case F32:
		return "F32"
	case BF16:
		return "BF16"
	case F16:
		return "F16"
	}
	return "unknown"
}

// BF16ToF32 widens a bfloat16. Exact.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F16ToF32 widens an IEEE half. Exact.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&31), uint32(h&0x3ff)
	switch {
	case exp == 31: // infinity or NaN, made quiet as the hardware does
		if frac != 0 {
			frac |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0: // zero or subnormal: frac * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*(1.0/(1<<24))))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// number i of a little-endian array of type t.
func load(data []byte, t DType, i int) float32 {
	switch t {
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	case BF16:
		return BF16ToF32(binary.LittleEndian.Uint16(data[2*i:]))
	default:
		return F16ToF32(binary.LittleEndian.Uint16(data[2*i:]))
	}
}

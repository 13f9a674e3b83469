package cpu

import (
	"math"

	"slipway/engine/device"
)

// roundTrip rounds the values of a head to what device.KVQ8 can hold. The CPU keeps them in f32: it is the reference of
// the format and saves no memory.
func roundTrip(head []float32) {
	for ; len(head) > 0; head = head[device.KVGroup:] {
		group := head[:device.KVGroup]
		low, high, finite := group[0], group[0], true
		for _, x := range group {
			low, high, finite = min(low, x), max(high, x), finite && float32(math.Abs(float64(x))) <= math.MaxFloat32
		}
		bias := shorter(low, low < 0)
		scale := shorter((high-bias)/255, true)
		for i, x := range group {
			switch {
			case !finite:
				group[i] = float32(math.NaN())
			case scale < 1e-37:
				group[i] = bias
			default:
				group[i] = float32(scale*float32(uint32(min(255, (x-bias)/scale)+0.5))) + bias
			}
		}
	}
}

// shorter rounds to bf16: away from zero, or towards it.
func shorter(x float32, away bool) float32 {
	bits := math.Float32bits(x)
	if away {
		bits += 0xffff
	}
	return math.Float32frombits(bits &^ 0xffff)
}

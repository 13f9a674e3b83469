package selftest

import (
	"fmt"
	"math"

	"slipway/engine/device"
)

// Attention is compared in two steps. Each device rounds keys and values to what its pages hold, and these are compared
// one by one: as f16 within a unit in the last place, as codes of 8 bits within a code. Then the reference takes over
// the pages of the device, so that attention is compared over the same memory: a key half way between two codes may be
// rounded to either side, and that is no difference of attention.

// writable is a reference's pages: Write is the inverse of Read.
type writable interface {
	device.KV
	Write(keys, values []float32, layer int, page int32, offset int)
}

// stored is the contents of a device's pages after an operation: a row [heads·headDim] for each position, in the order
// of reading.
type stored struct{ keys, values [][]float32 }

// sequence is a page table and how many positions of it are filled.
type sequence struct {
	pages []int32
	n     int
}

// read takes out what pages hold of a layer.
func read(kv device.KV, layer int, sequences []sequence) (s stored) {
	g := kv.Geometry()
	for _, q := range sequences {
		for p := range q.n {
			k, v := make([]float32, g.Heads*g.HeadDim), make([]float32, g.Heads*g.HeadDim)
			kv.Read(k, v, layer, q.pages[p/device.PageTokens], p%device.PageTokens)
			s.keys, s.values = append(s.keys, k), append(s.values, v)
		}
	}
	return s
}

// takeOver writes s into pages of the reference.
func (s stored) takeOver(kv writable, layer int, sequences []sequence) {
	at := 0
	for _, q := range sequences {
		for p := range q.n {
			kv.Write(s.keys[at], s.values[at], layer, q.pages[p/device.PageTokens], p%device.PageTokens)
			at++
		}
	}
}

// unitsFrom names the first f16 that is more than a unit in the last place from the reference's; empty when there is
// none. A value is rounded once, to the nearest: half a unit. A key comes from a norm and a rotation, which may cancel:
// beside the unit it may be off by f32's rounding of what was rotated.
func (s stored) unitsFrom(want stored) string {
	apart := func(got, want []float32, most, ofLargest float64) string {
		rounding := ofLargest * Size(want)
		for i, w := range want {
			_, exponent := math.Frexp(float64(w))
			if unit := math.Ldexp(1, max(exponent, -13)-11); !(math.Abs(float64(got[i])-float64(w)) <= most*unit+
				rounding) && w == w {
				return fmt.Sprintf("%v at %d, wanted %v (a unit is %.3g)", got[i], i, w, unit)
			}
		}
		return ""
	}
	for i := range want.keys {
		if what := apart(s.values[i], want.values[i], 0.5, 0); what != "" {
			return fmt.Sprintf("values of position %d: %s", i, what)
		}
		if what := apart(s.keys[i], want.keys[i], 1, 1e-6); what != "" {
			return fmt.Sprintf("keys of position %d: %s", i, what)
		}
	}
	return ""
}

// differFrom names the first code that differs from the reference's, or says that too many groups of keys differ; empty
// when neither is true. A key may get the next code, where the norm or the rotation was rounded differently. A value is
// stored as it is: its code is the same.
func (s stored) differFrom(want stored) string {
	others, groups := 0, 0
	for i := range want.keys {
		if _, _, far := groupsApart(s.values[i], want.values[i], 0.01); far != "" {
			return fmt.Sprintf("values of position %d: %s", i, far)
		}
		n, of, far := groupsApart(s.keys[i], want.keys[i], 1.05)
		if far != "" {
			return fmt.Sprintf("keys of position %d: %s", i, far)
		}
		others, groups = others+n, groups+of
	}
	if others > 2+groups/25 {
		return fmt.Sprintf("%d of %d groups of keys have other codes", others, groups)
	}
	return ""
}

// groupsApart counts the groups in which a code differs; the sentence names the first that is more than most codes
// away.
func groupsApart(got, want []float32, most float64) (others, groups int, what string) {
	for from := 0; from < len(want); from += device.KVGroup {
		g, w := got[from:from+device.KVGroup], want[from:from+device.KVGroup]
		low, high := float64(w[0]), float64(w[0])
		for _, v := range w {
			low, high = min(low, float64(v)), max(high, float64(v))
		}
		code, other := (high-low)/255, false
		for i := range w {
			d := math.Abs(float64(g[i]) - float64(w[i]))
			if math.IsNaN(float64(w[i])) && math.IsNaN(float64(g[i])) {
				continue
			}
			if !(d <= most*code+1e-30) {
				return 0, 0, fmt.Sprintf("%v at %d, wanted %v (a code is %.3g)", g[i], from+i, w[i], code)
			}
			other = other || d > 0.01*code
		}
		groups++
		if other {
			others++
		}
	}
	return others, groups, ""
}

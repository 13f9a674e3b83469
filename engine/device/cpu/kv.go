package cpu

import (
	"fmt"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// kv is a pool of pages: keys per layer [pages, heads, headDim, 256] (transposed, as kernels.KVBlock wants them),
// values per layer [pages, heads, 256, headDim]. The system gives the memory page by page as it is written.
type kv struct {
	g            device.KVGeometry
	keys, values [][]float32
}

func (d *Device) KV(g device.KVGeometry) (device.KV, error) {
	if g.Format == device.KVQ8 && g.HeadDim%device.KVGroup != 0 {
		return nil, fmt.Errorf("attention heads of %d dimensions: the 8-bit format takes multiples of %d", g.HeadDim,
			device.KVGroup)
	}
	k := &kv{g: g}
	for range g.Layers {
		k.keys = append(k.keys, make([]float32, g.Pages*k.pageFloats()))
		k.values = append(k.values, make([]float32, g.Pages*k.pageFloats()))
	}
	return k, nil
}

func (k *kv) Geometry() device.KVGeometry { return k.g }

// pageFloats is the keys, or the values, of one page and layer.
func (k *kv) pageFloats() int { return k.g.Heads * k.headFloats() }

func (k *kv) headFloats() int { return k.g.HeadDim * device.PageTokens }

func (k *kv) block(layer int, page int32, head int) kernels.KVBlock {
	at := int(page)*k.pageFloats() + head*k.headFloats()
	return kernels.KVBlock{Keys: k.keys[layer][at : at+k.headFloats()], Values: k.values[layer][at : at+k.headFloats()],
		ValueStride: k.g.HeadDim}
}

func (k *kv) CopyPage(dst, src int32) {
	n := k.pageFloats()
	for l := range k.g.Layers {
		for _, all := range [][]float32{k.keys[l], k.values[l]} {
			copy(all[int(dst)*n:(int(dst)+1)*n], all[int(src)*n:(int(src)+1)*n])
		}
	}
}

func (k *kv) Read(keys, values []float32, layer int, page int32, offset int) {
	d := k.g.HeadDim
	for h := range k.g.Heads {
		b := k.block(layer, page, h)
		kernels.LoadKey(keys[h*d:(h+1)*d], b.Keys, offset)
		copy(values[h*d:(h+1)*d], b.Values[offset*d:])
	}
}

// Write is the inverse of Read: it stores keys and values, [heads·headDim], as they are, for tests that compare another
// device with this one over the same memory.
func (k *kv) Write(keys, values []float32, layer int, page int32, offset int) {
	d := k.g.HeadDim
	for h := range k.g.Heads {
		b := k.block(layer, page, h)
		kernels.StoreKey(b.Keys, offset, keys[h*d:(h+1)*d])
		copy(b.Values[offset*d:], values[h*d:(h+1)*d])
	}
}

func (k *kv) Bytes() int64 {
	return int64(k.g.Layers) * 2 * int64(k.g.Pages) * int64(k.pageFloats()) * 4
}

func (d *Device) KVBytes(g device.KVGeometry) int64 { return (&kv{g: g}).Bytes() }

// KVFormats leaves KVQ8 out: the CPU makes it as the format's reference, and keeps it in f32.
func KVFormats() []string { return []string{"f32"} }

func (d *Device) KVFormats() []string { return KVFormats() }

// state keeps all layers in one slice: S [layers, Hv, Dv, Dk], then tails [layers, taps-1, channels].
type state struct {
	g   device.StateGeometry
	f   []float32
	rec *recording // nil: not recorded
}

func (d *Device) State(g device.StateGeometry) (device.State, error) {
	s := &state{g: g}
	s.f = aligned(g.Layers * (s.matrixFloats() + s.tailFloats()))
	return s, nil
}

func (s *state) matrixFloats() int { return s.g.ValueHeads * s.g.ValueDim * s.g.KeyDim }
func (s *state) tailFloats() int   { return (s.g.ConvTaps - 1) * s.g.ConvChannels }

// head is S of one layer and value head, [Dv, Dk].
func (s *state) head(layer, h int) []float32 {
	n := s.g.ValueDim * s.g.KeyDim
	at := layer*s.matrixFloats() + h*n
	return s.f[at : at+n]
}

// tail is the last rows before the convolution, [taps-1, channels].
func (s *state) tail(layer int) []float32 {
	at := s.g.Layers*s.matrixFloats() + layer*s.tailFloats()
	return s.f[at : at+s.tailFloats()]
}

func (s *state) Geometry() device.StateGeometry { return s.g }
func (s *state) Reset() {
	s.forget()
	clear(s.f)
}
func (s *state) Copy(from device.State) {
	if f := from.(*state); f.g == s.g {
		s.forget()
		copy(s.f, f.f)
		return
	}
	panic("cpu: Copy between states of other shapes")
}

func (s *state) Read(matrices, tail []float32, layer int) {
	copy(matrices, s.f[layer*s.matrixFloats():(layer+1)*s.matrixFloats()])
	copy(tail, s.tail(layer))
}

func (s *state) Bytes() int64 { return int64(len(s.f)) * 4 }
func (s *state) Release()     { s.f, s.rec = nil, nil }

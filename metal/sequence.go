//go:build unix

package metal

import (
	"fmt"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// maxHeadDim bounds the private memory of attention_plain.
const maxHeadDim = 256

// kv is a pool of pages, a buffer of keys and one of values a layer, f16 [pages, heads, 256, headDim], zero until
// written. It implements device.KV.
type kv struct {
	g            device.KVGeometry
	keys, values []*mtl.Buffer
}

func (d *Device) KV(g device.KVGeometry) (device.KV, error) {
	if g.HeadDim < 1 || g.HeadDim > maxHeadDim {
		return nil, fmt.Errorf("attention heads of %d dimensions: the kernels take up to %d", g.HeadDim, maxHeadDim)
	}
	k := &kv{g: g}
	for range g.Layers {
		for _, to := range []*[]*mtl.Buffer{&k.keys, &k.values} {
			b, err := d.allocatePages(fmt.Sprintf("the cache of %d pages", g.Pages), g.Pages*k.pageBytes())
			if err != nil {
				for _, b := range append(k.keys, k.values...) {
					d.free(b)
				}
				return nil, err
			}
			*to = append(*to, b)
		}
	}
	return k, nil
}

func (k *kv) Geometry() device.KVGeometry { return k.g }

// pageBytes is the keys, or the values, of one page and layer.
func (k *kv) pageBytes() int { return k.g.Heads * device.PageTokens * k.g.HeadDim * 2 }

func (k *kv) CopyPage(dst, src int32) {
	n := k.pageBytes()
	for _, b := range append(k.keys[:len(k.keys):len(k.keys)], k.values...) {
		copy(b.Bytes[int(dst)*n:(int(dst)+1)*n], b.Bytes[int(src)*n:(int(src)+1)*n])
	}
}

func (k *kv) Read(keys, values []float32, layer int, page int32, offset int) {
	d := k.g.HeadDim
	for h := range k.g.Heads {
		at := ((int(page)*k.g.Heads+h)*device.PageTokens + offset) * d
		for i := range d {
			keys[h*d+i] = half(k.keys[layer].Bytes[2*(at+i):])
			values[h*d+i] = half(k.values[layer].Bytes[2*(at+i):])
		}
	}
}

func (k *kv) Bytes() int64 { return int64(k.g.Layers) * 2 * int64(k.g.Pages) * int64(k.pageBytes()) }

// half is the f16 at the head of b.
func half(b []byte) float32 {
	h := uint32(b[0]) | uint32(b[1])<<8
	sign, exponent, fraction := h>>15<<31, h>>10&31, h&1023
	var bits uint32
	switch exponent {
	case 0: // zero or denormal: fraction·2^-24
		f := float32(fraction) / (1 << 24)
		if sign != 0 {
			f = -f
		}
		return f
	case 31:
		bits = sign | 0xFF<<23 | fraction<<13
	default:
		bits = sign | (exponent+112)<<23 | fraction<<13
	}
	return *(*float32)(unsafe.Pointer(&bits))
}

// state keeps all layers in one buffer: S [layers, Hv, Dv, Dk], then tails [layers, taps-1, channels]. It implements
// device.TapedState.
type state struct {
	dev    *Device
	g      device.StateGeometry
	b      *mtl.Buffer
	rec    *recording // nil: no tape
	broken error      // of a replay: the state is not what it should be
}

// convTaps is the only kernel size of the family.
const convTaps = 4

func (d *Device) State(g device.StateGeometry) (device.State, error) {
	if g.ConvTaps != convTaps {
		return nil, fmt.Errorf("a convolution of %d taps: the kernel has %d", g.ConvTaps, convTaps)
	}
	s := &state{dev: d, g: g}
	b, err := d.allocate("a recurrent state", int(s.Bytes()))
	if err != nil {
		return nil, err
	}
	s.b = b
	s.Reset()
	return s, nil
}

func (s *state) matrixFloats() int { return s.g.ValueHeads * s.g.ValueDim * s.g.KeyDim }
func (s *state) tailFloats() int   { return (s.g.ConvTaps - 1) * s.g.ConvChannels }

// matrixAt and tailAt are where a layer's parts begin, in floats.
func (s *state) matrixAt(layer int) int { return layer * s.matrixFloats() }
func (s *state) tailAt(layer int) int {
	return s.g.Layers*s.matrixFloats() + layer*s.tailFloats()
}

func (s *state) Geometry() device.StateGeometry { return s.g }

func (s *state) Reset() {
	s.forget()
	s.broken = nil
	clear(s.b.Bytes)
}

func (s *state) Copy(from device.State) {
	f := from.(*state)
	s.forget()
	s.broken = f.broken
	if f.g != s.g {
		panic("metal: Copy between states of other shapes")
	}
	copy(s.b.Bytes, f.b.Bytes)
}

func (s *state) Read(matrices, tail []float32, layer int) {
	copy(matrices, floats(s.b, s.matrixAt(layer), s.matrixFloats()))
	copy(tail, floats(s.b, s.tailAt(layer), s.tailFloats()))
}

func (s *state) Bytes() int64 {
	return 4 * int64(s.g.Layers) * int64(s.matrixFloats()+s.tailFloats())
}

func (s *state) Release() {
	if s.rec != nil {
		s.rec.tape.Release()
		s.rec.base.Release()
		s.rec = nil
	}
	s.dev.free(s.b)
	s.b = nil
}

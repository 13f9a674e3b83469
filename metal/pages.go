//go:build unix

package metal

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// maxHeadDim bounds the private memory of attention_plain.
const maxHeadDim = 256

// kv is a pool of pages, a buffer of keys and one of values a layer, zero until written. Native: f16 [pages, heads,
// 256, headDim]. KVQ8: a page is its codes u8 [heads, 256, headDim], then words u32 [heads, 256, headDim/64] of scale
// and bias. It implements device.KV.
type kv struct {
	dev          *Device
	g            device.KVGeometry
	keys, values []*mtl.Buffer
	lost         error // the memory could not be mapped again: no pass may use it
}

// KVFormats names the formats of attention memory that KV makes, indexed by device.KVFormat.
func KVFormats() []string { return []string{"f16", "q8"} }

func (d *Device) KVFormats() []string { return KVFormats() }

func (d *Device) KVBytes(g device.KVGeometry) int64 { return (&kv{g: g}).Bytes() }

func (d *Device) KV(g device.KVGeometry) (device.KV, error) {
	if g.HeadDim < 1 || g.HeadDim > maxHeadDim {
		return nil, fmt.Errorf("attention heads of %d dimensions: the kernels take up to %d", g.HeadDim, maxHeadDim)
	}
	if g.Format == device.KVQ8 && g.HeadDim%device.KVGroup != 0 {
		return nil, fmt.Errorf("attention heads of %d dimensions: the 8-bit format takes multiples of %d", g.HeadDim,
			device.KVGroup)
	}
	k := &kv{dev: d, g: g}
	what := fmt.Sprintf("the cache of %d pages", g.Pages)
	if err := d.fits(what, k.Bytes()); err != nil {
		return nil, err
	}
	for range g.Layers {
		for _, to := range []*[]*mtl.Buffer{&k.keys, &k.values} {
			b, err := d.allocatePages(what, g.Pages*k.pageBytes())
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

// q8 is the kernels' constant of that name.
func (k *kv) q8() uint32 {
	if k.g.Format == device.KVQ8 {
		return 1
	}
	return 0
}

// rowBytes is one position of a head as it lies in a run; wordBytes its scales and biases elsewhere in the page.
func (k *kv) rowBytes() int {
	if k.g.Format == device.KVQ8 {
		return k.g.HeadDim
	}
	return 2 * k.g.HeadDim
}

func (k *kv) wordBytes() int {
	if k.g.Format == device.KVQ8 {
		return k.g.HeadDim / device.KVGroup * 4
	}
	return 0
}

// pageBytes is the keys, or the values, of one page and layer.
func (k *kv) pageBytes() int { return k.g.Heads * device.PageTokens * (k.rowBytes() + k.wordBytes()) }

// rowsAt and wordsAt are where a position of a head begins in a layer's buffer, in bytes.
func (k *kv) rowsAt(page int32, head, at int) int {
	return int(page)*k.pageBytes() + (head*device.PageTokens+at)*k.rowBytes()
}

func (k *kv) wordsAt(page int32, head, at int) int {
	return int(page)*k.pageBytes() + k.g.Heads*device.PageTokens*k.rowBytes() +
		(head*device.PageTokens+at)*k.wordBytes()
}

func (k *kv) CopyPage(dst, src int32) {
	n := k.pageBytes()
	for _, b := range append(k.keys[:len(k.keys):len(k.keys)], k.values...) {
		copy(b.Bytes[int(dst)*n:(int(dst)+1)*n], b.Bytes[int(src)*n:(int(src)+1)*n])
	}
}

func (k *kv) Read(keys, values []float32, layer int, page int32, offset int) {
	d := k.g.HeadDim
	for h := range k.g.Heads {
		k.head(keys[h*d:(h+1)*d], k.keys[layer].Bytes, page, h, offset)
		k.head(values[h*d:(h+1)*d], k.values[layer].Bytes, page, h, offset)
	}
}

// head reads one position of a head.
func (k *kv) head(to []float32, bytes []byte, page int32, head, at int) {
	row, words := bytes[k.rowsAt(page, head, at):], bytes[k.wordsAt(page, head, at):]
	for i := range to {
		if k.g.Format == device.KVQ8 {
			word := binary.LittleEndian.Uint32(words[i/device.KVGroup*4:])
			to[i] = math.Float32frombits(word<<16)*float32(row[i]) + math.Float32frombits(word&^0xffff)
		} else {
			to[i] = half(row[2*i:])
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

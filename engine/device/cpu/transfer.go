package cpu

import (
	"unsafe"

	"slipway/engine/device"
)

// Bytes of floats are taken as they lie: both architectures that we build for are little-endian.

func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}

func (k *kv) PageBytes(tokens int) int { return 4 * k.g.Layers * 2 * k.g.Heads * k.g.HeadDim * tokens }

func (k *kv) ReadPage(dst []byte, page int32, tokens int) {
	k.pageRuns(page, tokens, func(run []float32) {
		copy(dst, bytesOf(run))
		dst = dst[4*len(run):]
	})
}

func (k *kv) WritePage(page int32, src []byte, tokens int) {
	k.pageRuns(page, tokens, func(run []float32) {
		copy(bytesOf(run), src)
		src = src[4*len(run):]
	})
}

// pageRuns visits the first tokens positions of a page: keys lie by dimension, values by position.
func (k *kv) pageRuns(page int32, tokens int, visit func([]float32)) {
	for l := range k.g.Layers {
		for h := range k.g.Heads {
			b := k.block(l, page, h)
			if tokens == device.PageTokens {
				visit(b.Keys)
				visit(b.Values)
				continue
			}
			for d := range k.g.HeadDim {
				visit(b.Keys[d*device.PageTokens:][:tokens])
			}
			visit(b.Values[:tokens*k.g.HeadDim])
		}
	}
}

func (s *state) ReadAll(dst []byte) { copy(dst[:4*len(s.f)], bytesOf(s.f)) }

func (s *state) WriteAll(src []byte) {
	s.forget()
	copy(bytesOf(s.f), src[:4*len(s.f)])
}

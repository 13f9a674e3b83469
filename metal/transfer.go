//go:build unix

package metal

import "slipway/metal/mtl"

// Pages and states are read and written as they are in the GPU's memory, which the host shares.

func (k *kv) PageBytes(tokens int) int {
	return 2 * k.g.Layers * k.g.Heads * (k.rowBytes() + k.wordBytes()) * tokens
}

func (k *kv) ReadPage(dst []byte, page int32, tokens int) {
	k.pageRuns(page, tokens, func(run []byte) { dst = dst[copy(dst, run):] })
}

func (k *kv) WritePage(page int32, src []byte, tokens int) {
	k.pageRuns(page, tokens, func(run []byte) { src = src[copy(run, src):] })
}

// pageRuns visits the first tokens positions of a page: layer by layer, head by head, keys then values, each followed
// by its words.
func (k *kv) pageRuns(page int32, tokens int, visit func([]byte)) {
	for l := range k.g.Layers {
		for h := range k.g.Heads {
			for _, b := range []*mtl.Buffer{k.keys[l], k.values[l]} {
				visit(b.Bytes[k.rowsAt(page, h, 0):][:tokens*k.rowBytes()])
				visit(b.Bytes[k.wordsAt(page, h, 0):][:tokens*k.wordBytes()])
			}
		}
	}
}

func (s *state) ReadAll(dst []byte) { copy(dst[:s.Bytes()], s.b.Bytes) }

func (s *state) WriteAll(src []byte) {
	s.forget()
	s.broken = nil
	copy(s.b.Bytes, src[:s.Bytes()])
}

//go:build unix

package metal

import "slipway/engine/device"

// Pages and states leave and come back as they lie in the GPU's memory, which the host shares.

func (k *kv) PageBytes(tokens int) int { return 4 * k.g.Layers * k.g.Heads * k.g.HeadDim * tokens }

func (k *kv) ReadPage(dst []byte, page int32, tokens int) {
	k.pageRuns(page, tokens, func(run []byte) { dst = dst[copy(dst, run):] })
}

func (k *kv) WritePage(page int32, src []byte, tokens int) {
	k.pageRuns(page, tokens, func(run []byte) { src = src[copy(run, src):] })
}

// pageRuns visits the first tokens positions of a page: layer by layer, head by head, keys then values.
func (k *kv) pageRuns(page int32, tokens int, visit func([]byte)) {
	row := 2 * k.g.HeadDim
	for l := range k.g.Layers {
		for h := range k.g.Heads {
			at := (int(page)*k.g.Heads + h) * device.PageTokens * row
			visit(k.keys[l].Bytes[at : at+tokens*row])
			visit(k.values[l].Bytes[at : at+tokens*row])
		}
	}
}

func (s *state) ReadAll(dst []byte) { copy(dst[:s.Bytes()], s.b.Bytes) }

func (s *state) WriteAll(src []byte) {
	s.forget()
	s.broken = nil
	copy(s.b.Bytes, src[:s.Bytes()])
}

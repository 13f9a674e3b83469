package model

import (
	"fmt"

	"slipway/engine/device"
	"slipway/engine/pass"
)

// PositionBytes is the size of the first tokens positions of a page.
func (n *Network) PositionBytes(tokens int) int { return n.kv.PageBytes(tokens) }

// ReadState copies the state after Len tokens to dst. It may run beside passes, which never change a point.
func (p *Point) ReadState(dst []byte) { p.state.ReadAll(dst) }

// ReadPage copies the first tokens positions of the point's page at index to dst. It may run beside passes: positions
// of a point are never written again while it refers to them.
func (p *Point) ReadPage(dst []byte, index, tokens int) {
	p.net.kv.ReadPage(dst, p.pages[index], tokens)
}

// Settle gives the point after at tokens, in [Len, Reach], without a tape. The new point must be released.
func (p *Point) Settle(at int) (pass.State, error) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	state, err := n.dev.State(n.stateGeometry)
	if err != nil {
		return nil, err
	}
	state.Copy(p.state)
	if at > p.len {
		state.Replay(p.tape, at-p.len)
	}
	q := &Point{net: n, len: at, state: state}
	q.mtpFrom, q.mtpLen = keptSlots(p.mtpFrom, p.mtpLen, at)
	q.section = n.cutSection(p.section, at)
	if at == p.Reach() {
		q.hidden = append([]float32(nil), p.hidden...)
	}
	q.pages = append([]int32(nil), p.pages[:pagesOf(at)]...)
	n.pages.Share(q.pages)
	if n.mtp != nil {
		q.mtpPages = append([]int32(nil), p.mtpPages[:min(len(p.mtpPages), pagesOf(q.mtpLen-q.mtpFrom))]...)
		n.mtpPages.Share(q.mtpPages)
	}
	return q, nil
}

// Import makes a point after tokens from an exported one: state, and page by page what ReadPage gave. Its first shared
// pages are those of base, which was computed from the same tokens; base may be nil, with shared 0. hidden is the final
// row of the last token, or nil. What a draft knows comes with SetSlots. Errors: ErrNoPages, a state of another size,
// and page's own, after which nothing is held.
func (n *Network) Import(tokens int, state []byte, hidden []float32, base pass.State, shared int,
	page func(index, tokens int) ([]byte, error)) (*Point, error) {
	fresh, err := n.dev.State(n.stateGeometry)
	if err != nil {
		return nil, err
	}
	if int64(len(state)) != fresh.Bytes() {
		fresh.Release()
		return nil, fmt.Errorf("a state of %d bytes for a network of %d", len(state), fresh.Bytes())
	}
	fresh.WriteAll(state)
	p := &Point{net: n, len: tokens, state: fresh, hidden: hidden}
	if err := n.takePages(p, base, shared); err != nil {
		p.Release()
		return nil, err
	}
	for i := shared; i < len(p.pages); i++ {
		held := min(device.PageTokens, tokens-i*device.PageTokens)
		data, err := page(i, held)
		if err != nil {
			p.Release()
			return nil, err
		}
		n.kv.WritePage(p.pages[i], data, held)
	}
	return p, nil
}

// takePages gives p its page table.
func (n *Network) takePages(p *Point, base pass.State, shared int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if shared > 0 {
		p.pages = append(p.pages, base.Pages()[:shared]...)
		n.pages.Share(p.pages)
	}
	for i := shared; i < pagesOf(p.len); i++ {
		page, err := n.pages.Take()
		if err != nil {
			return err
		}
		p.pages = append(p.pages, page)
		n.pages.Wrote(page, min(device.PageTokens, p.len-i*device.PageTokens))
	}
	return nil
}

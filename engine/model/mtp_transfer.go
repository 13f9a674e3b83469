package model

import (
	"slipway/engine/device"
	"slipway/engine/memory"
)

// SlotBytes is the size of one slot of the MTP head as Point.MTP gives it; 0 without a head.
func (n *Network) SlotBytes() int64 {
	if n.mtp == nil {
		return 0
	}
	return int64(n.mtp.kv.PageBytes(1))
}

// MTP gives the head's slots that all continuations of the point share, first to Reach-2, page by page in the device's
// own layout; nil where they are not all known. It may run beside passes, as ReadPage.
func (p *Point) MTP() (first int, slots []byte) {
	size := int(p.net.SlotBytes())
	if size == 0 || p.mtpLen <= p.mtpFrom || p.mtpLen != memory.MTPShared(p.Reach()) {
		return 0, nil
	}
	slots = make([]byte, size*(p.mtpLen-p.mtpFrom))
	p.eachMTPPage(func(page int32, at, tokens int) {
		p.net.mtp.kv.ReadPage(slots[at*size:], page, tokens)
	})
	return p.mtpFrom, slots
}

// SetMTP gives a point that was just imported what MTP gave of the exported one. Without it the head begins anew behind
// the point. Errors: ErrNoPages, after which the point is as before.
func (p *Point) SetMTP(first int, slots []byte) error {
	n, size := p.net, int(p.net.SlotBytes())
	if size == 0 || len(slots) == 0 {
		return nil
	}
	last := first + len(slots)/size
	if first < 0 || len(slots)%size != 0 || last != memory.MTPShared(p.len) {
		panic("model: slots of another length than the point's")
	}
	n.mu.Lock()
	for i := range pagesOf(last - first) {
		page, err := n.mtpPages.Take()
		if err != nil {
			n.mtpPages.Drop(p.mtpPages)
			p.mtpPages = nil
			n.mu.Unlock()
			return err
		}
		p.mtpPages = append(p.mtpPages, page)
		n.mtpPages.Wrote(page, min(device.PageTokens, last-first-i*device.PageTokens))
	}
	n.mu.Unlock()
	p.mtpFrom, p.mtpLen = first, last
	p.eachMTPPage(func(page int32, at, tokens int) {
		n.mtp.kv.WritePage(page, slots[at*size:], tokens)
	})
	return nil
}

// eachMTPPage visits the pages of the head's slots: at is the first slot in one, counted from mtpFrom.
func (p *Point) eachMTPPage(visit func(page int32, at, tokens int)) {
	known := p.mtpLen - p.mtpFrom
	for i := range pagesOf(known) {
		at := i * device.PageTokens
		visit(p.mtpPages[i], at, min(device.PageTokens, known-at))
	}
}

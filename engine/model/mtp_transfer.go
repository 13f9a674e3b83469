package model

import (
	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/engine/pass"
)

// SlotBytes is the size of one slot of the MTP head, or of one row of another draft, as Point.Slots gives it; 0 without
// a draft.
func (n *Network) SlotBytes() int64 {
	if n.mtp == nil {
		return int64(n.opt.SectionRow)
	}
	return int64(n.mtp.kv.PageBytes(1))
}

// Slots gives what all continuations of the point share of a draft's state; nil where not all of it is known. Of an MTP
// head: slots first to Reach-2, page by page in the device's own layout. Of another draft: its rows first to Reach-1.
// It may run beside passes, as ReadPage.
func (p *Point) Slots() (first int, slots []byte) {
	size := int(p.net.SlotBytes())
	if p.net.mtp == nil && size > 0 {
		return p.section.First, p.section.Rows
	}
	if size == 0 || p.mtpLen <= p.mtpFrom || p.mtpLen != memory.MTPShared(p.Reach()) {
		return 0, nil
	}
	slots = make([]byte, size*(p.mtpLen-p.mtpFrom))
	p.eachMTPPage(func(page int32, at, tokens int) {
		p.net.mtp.kv.ReadPage(slots[at*size:], page, tokens)
	})
	return p.mtpFrom, slots
}

// cutSection is a section without what lies after a length of at tokens; none where nothing is left, or where it does
// not reach that far.
func (n *Network) cutSection(s pass.Section, at int) pass.Section {
	rows := at - s.First
	if s.Rows == nil || rows <= 0 || rows*n.opt.SectionRow > len(s.Rows) {
		return pass.Section{}
	}
	s.Rows = s.Rows[:rows*n.opt.SectionRow]
	return s
}

// SetSlots gives a point that was just imported what Slots gave of the exported one. Without it the draft begins anew
// after the point. Errors: ErrNoPages, after which the point is as before.
func (p *Point) SetSlots(first int, slots []byte) error {
	n, size := p.net, int(p.net.SlotBytes())
	if size == 0 || len(slots) == 0 {
		return nil
	}
	if n.mtp == nil {
		p.section = pass.Section{First: first, Rows: slots}
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

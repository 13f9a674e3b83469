package model

import (
	"slipway/engine/device"
	"slipway/engine/memory"
)

// Sequence is one conversation's place in the network: how many tokens it has taken, its attention pages and its recurrent
// state. It is used by one goroutine at a time; Close may be called twice.
type Sequence struct {
	net    *Network
	len    int
	pages  table
	state  device.State
	mtp    table // the MTP head's pages; its slots lag one behind
	mtpLen int
	lost   bool // a pass failed midway
	open   bool
}

// table is a page table with the book that its pages come from.
type table struct {
	book *memory.Pages
	kv   device.KV
	ids  []int32
}

// Len is the number of tokens already processed.
func (s *Sequence) Len() int { return s.len }

// MTPLen is the number of slots that the MTP head has processed: slot S pairs the hidden row of position S with token S+1.
func (s *Sequence) MTPLen() int { return s.mtpLen }

// NewSequence opens an empty sequence. ErrNoPages when MaxSequences are open.
func (n *Network) NewSequence() (*Sequence, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.idle) == 0 {
		return nil, ErrNoPages
	}
	s := &Sequence{net: n, open: true, pages: table{book: n.pages, kv: n.kv}, state: n.idle[len(n.idle)-1]}
	if n.mtp != nil {
		s.mtp = table{book: n.mtpPages, kv: n.mtp.kv}
	}
	n.idle = n.idle[:len(n.idle)-1]
	s.state.Reset()
	return s, nil
}

// Close gives pages and state back.
func (s *Sequence) Close() {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if !s.open {
		return
	}
	s.open = false
	s.pages.drop()
	s.mtp.drop()
	s.net.idle = append(s.net.idle, s.state)
	s.state = nil
}

func (t *table) drop() {
	if t.book != nil {
		t.book.Drop(t.ids)
		t.ids = t.ids[:0]
	}
}

// reserve makes positions [from, end) writable: it takes pages, and copies the one page that others also stand in when from
// lies before what they wrote. On error nothing of the sequence's content has changed.
func (t *table) reserve(from, end int) error {
	if at := from / device.PageTokens; at < len(t.ids) {
		// Pages behind the first one to be written belong to a continuation that is being overwritten.
		if extra := t.ids[at+1:]; len(extra) > 0 {
			t.book.Drop(extra)
			t.ids = t.ids[:at+1]
		}
		if page := t.ids[at]; !t.book.MayWrite(page, from%device.PageTokens) {
			copied, err := t.book.Take()
			if err != nil {
				return err
			}
			t.kv.CopyPage(copied, page)
			t.book.Drop(t.ids[at : at+1])
			t.ids[at] = copied
		}
	}
	for len(t.ids)*device.PageTokens < end {
		page, err := t.book.Take()
		if err != nil {
			return err
		}
		t.ids = append(t.ids, page)
	}
	return nil
}

// wrote records that positions [from, end) were written.
func (t *table) wrote(from, end int) {
	for p := from; p < end; {
		at := p / device.PageTokens
		stop := min(end, (at+1)*device.PageTokens)
		t.book.Wrote(t.ids[at], stop-at*device.PageTokens)
		p = stop
	}
}

// Point is a restore point: what a sequence was after Len tokens. It refers to the attention pages that it shares with its
// sequence and holds a copy of the recurrent state; it never copies attention memory.
type Point struct {
	net             *Network
	len, mtpLen     int
	pages, mtpPages []int32
	state           device.State
}

// Len is the number of tokens that the point stands behind.
func (p *Point) Len() int { return p.len }

// Bytes is what the point holds beside shared pages.
func (p *Point) Bytes() int64 { return p.state.Bytes() }

// Snapshot keeps the sequence as it is now. The point must be released.
func (s *Sequence) Snapshot() (*Point, error) {
	n := s.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if !s.open {
		panic("model: Snapshot of a closed sequence")
	}
	if s.lost {
		return nil, ErrSequenceLost
	}
	state, err := n.dev.State(n.stateGeometry)
	if err != nil {
		return nil, err
	}
	state.Copy(s.state)
	p := &Point{net: n, len: s.len, mtpLen: s.mtpLen, state: state,
		pages:    s.pages.share(s.len),
		mtpPages: s.mtp.share(s.mtpLen)}
	return p, nil
}

// share refers to the pages that hold positions [0, n).
func (t *table) share(n int) []int32 {
	if t.book == nil {
		return nil
	}
	ids := append([]int32(nil), t.ids[:(n+device.PageTokens-1)/device.PageTokens]...)
	t.book.Share(ids)
	return ids
}

// Restore makes the sequence what it was, or another sequence of the same network was, at the point: every later logit is
// equal bit for bit. The point stays good.
func (s *Sequence) Restore(p *Point) {
	n := s.net
	if p.net != n || !s.open {
		panic("model: Restore of another network's point or into a closed sequence")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.pages.replace(p.pages)
	s.mtp.replace(p.mtpPages)
	s.state.Copy(p.state)
	s.len, s.mtpLen, s.lost = p.len, p.mtpLen, false
}

func (t *table) replace(ids []int32) {
	if t.book == nil {
		return
	}
	t.book.Share(ids)
	t.book.Drop(t.ids)
	t.ids = append(t.ids[:0], ids...)
}

// Release gives the point's references and state back. Once.
func (p *Point) Release() {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.pages.Drop(p.pages)
	if p.mtpPages != nil {
		p.net.mtpPages.Drop(p.mtpPages)
	}
	p.state.Release()
	p.pages, p.mtpPages = nil, nil
}

package model

import (
	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/engine/pass"
)

// Sequence is one token sequence in the network: its length, its attention pages and its recurrent state. It implements
// pass.Sequence. It is used by one goroutine at a time; Close may be called twice.
type Sequence struct {
	net   *Network
	len   int
	pages table
	state device.State
	mtp   table // the MTP head's pages; its slots lag one behind
	// Slots [mtpFrom, mtpLen) of the head are known: slot S is position S-mtpFrom of its pages.
	mtpFrom, mtpLen int
	last            []float32           // final hidden row of the last position, [Hidden]; empty where it is not known
	section         pass.Section        // of the state that it was restored from
	onSave          func() pass.Section // gives that of states that are saved; nil: they have none
	lost            bool                // a pass failed in the middle
	open            bool
}

// table is a page table with the pool that its pages come from.
type table struct {
	book *memory.Pages
	kv   device.KV
	ids  []int32
}

// Len is the number of processed tokens.
func (s *Sequence) Len() int { return s.len }

// MTPLen is the number of slots that the MTP head has processed: slot S pairs the hidden row of position S with token
// S+1.
func (s *Sequence) MTPLen() int { return s.mtpLen }

// Last is the final hidden row of the last position, [Hidden]; empty where it is not known. The next pass overwrites
// it.
func (s *Sequence) Last() []float32 { return s.last }

// SetLast gives the sequence that row again after a Rewind, for the points that are saved of it. It is copied.
func (s *Sequence) SetLast(row []float32) { s.last = append(s.last[:0], row...) }

// Section is what the state that the sequence was restored from knew for a draft beside the network.
func (s *Sequence) Section() pass.Section { return s.section }

// OnSave has states that are saved of the sequence keep what section then gives; nil: nothing.
func (s *Sequence) OnSave(section func() pass.Section) { s.onSave = section }

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

// Close returns pages and state to the network.
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

// reserve makes positions [from, end) writable: it takes pages, and copies the one shared page in which others wrote
// beyond from. On error the sequence's content has not changed.
func (t *table) reserve(from, end int) error {
	if at := from / device.PageTokens; at < len(t.ids) {
		// Pages after the first one to be written belong to a continuation that is being overwritten.
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

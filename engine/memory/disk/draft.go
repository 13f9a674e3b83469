package disk

import (
	"slipway/engine/memory"
	"slipway/engine/pass"
)

// A draft's own state is in sections of a point's file, each with a key of its own. Where one is missing, or was
// written under another key, the point serves as it is and the draft begins with what it has.
const (
	hiddenSection = "hidden"
	mtpSection    = "mtp"
)

// DraftOptions say what the points of this run hold of an MTP head's attention. The zero value: nothing.
type DraftOptions struct {
	// what must be equal for its use: the head's weights, its KV format, the trunk that its rows are of
	Key       string
	SlotBytes int64 // of one slot's keys and values
	MostSlots int   // kept of a prefix, the last ones
}

// Draft is a draft's state behind a prefix of P tokens.
//
// Slot S of an MTP head pairs the final hidden row of S with token S+1. So what all continuations share ends with slot
// P-2 ([memory.MTPShared]); slot P-1 is completed from Hidden with the token that really follows, before the draft
// proposes.
type Draft struct {
	Hidden []float32 // final row of position P-1; nil where it is not known
	First  int       // slot that MTP begins with
	MTP    []byte    // slots First to P-2, SlotBytes each; empty where they are not known
}

// DraftState is a state that also knows its draft's. The store calls MTP beside Hidden.
type DraftState interface {
	pass.State
	MTP() (first int, slots []byte) // as in Draft; the slice must not change until Release
}

// mtpSlots is the range of slots that a file of so many tokens holds, at most.
func (d DraftOptions) mtpSlots(tokens int) (first, n int) {
	if d.Key == "" {
		return 0, 0
	}
	shared := memory.MTPShared(tokens)
	n = min(shared, d.MostSlots)
	return shared - n, n
}

// mtpOf is the section that a state's draft makes; ok is false where it knows nothing that fits.
func (s *Store) mtpOf(state pass.State, tokens int) (section, []byte, bool) {
	exporter, can := state.(DraftState)
	_, most := s.opt.Draft.mtpSlots(tokens)
	if !can || most == 0 {
		return section{}, nil, false
	}
	first, slots := exporter.MTP()
	n := memory.MTPShared(tokens) - first
	if n <= 0 || int64(len(slots)) != int64(n)*s.opt.Draft.SlotBytes {
		return section{}, nil, false
	}
	skip := max(0, n-most)
	slots = slots[int64(skip)*s.opt.Draft.SlotBytes:]
	out := describe(mtpSection, slots)
	out.Key, out.First = s.opt.Draft.Key, first+skip
	return out, slots, true
}

// readDraft takes a draft's section where it is this run's.
func (s *Store) readDraft(d *Draft, key memory.Key, tokens int, from section, data []byte) {
	found := []memory.Section{{Name: from.Name, Key: from.Key}}
	good := func(name, key string) bool {
		return memory.FindSection(found, memory.Section{Name: name, Key: key}) == memory.SectionGood
	}
	switch {
	case good(hiddenSection, draftKey(key)) && from.Bytes == s.opt.RowBytes:
		d.Hidden = decodeRow(data)
	case s.opt.Draft.Key != "" && good(mtpSection, s.opt.Draft.Key) && from.First >= 0 &&
		from.Bytes == int64(memory.MTPShared(tokens)-from.First)*s.opt.Draft.SlotBytes:
		d.First, d.MTP = from.First, data
	}
}

package disk

import (
	"slipway/engine/memory"
	"slipway/engine/pass"
)

// A draft's own state is in sections of a point's file, each with a key of its own. Where one is missing, or was
// written under another key, the point serves as it is and the draft begins with what it has.
const (
	hiddenSection  = "hidden"
	mtpSection     = "mtp"
	dflash2Section = "dflash2"
)

// DraftOptions say what the points of this run hold of a draft's own state: an MTP head's attention, or the context
// rows of a DFlash2 draft. The zero value: nothing.
type DraftOptions struct {
	// what must be equal for its use: the draft's weights, its format, the trunk that its rows are of
	Key       string
	SlotBytes int64 // of one slot's keys and values, or of one context row
	MostSlots int   // kept of a prefix, the last ones
	DFlash2   bool  // slots are context rows, one for every token
}

// name is the section's.
func (d DraftOptions) name() string {
	if d.DFlash2 {
		return dflash2Section
	}
	return mtpSection
}

// shared is how many slots a prefix of tokens has in common with every continuation.
func (d DraftOptions) shared(tokens int) int {
	if d.DFlash2 {
		return tokens
	}
	return memory.MTPShared(tokens)
}

// Draft is a draft's state after a prefix of P tokens.
//
// Slot S of an MTP head pairs the final hidden row of S with token S+1. So what all continuations share ends with slot
// P-2 ([memory.MTPShared]); slot P-1 is completed from Hidden with the token that really follows, before the draft
// proposes. A DFlash2 draft has a context row for every token, P-1 included.
type Draft struct {
	Hidden []float32 // final row of position P-1; nil where it is not known
	First  int       // slot that Slots begins with
	Slots  []byte    // slots First to P-2, or rows First to P-1, SlotBytes each; empty where they are not known
}

// DraftState is a state that also knows its draft's. The store calls Slots beside Hidden.
type DraftState interface {
	pass.State
	Slots() (first int, slots []byte) // as in Draft; the slice must not change until Release
}

// slots is the range of slots that a file of so many tokens holds, at most.
func (d DraftOptions) slots(tokens int) (first, n int) {
	if d.Key == "" {
		return 0, 0
	}
	shared := d.shared(tokens)
	n = min(shared, d.MostSlots)
	return shared - n, n
}

// slotsOf is the section that a state's draft makes; ok is false where it knows nothing that fits.
func (s *Store) slotsOf(state pass.State, tokens int) (section, []byte, bool) {
	exporter, can := state.(DraftState)
	_, most := s.opt.Draft.slots(tokens)
	if !can || most == 0 {
		return section{}, nil, false
	}
	first, slots := exporter.Slots()
	n := s.opt.Draft.shared(tokens) - first
	if n <= 0 || int64(len(slots)) != int64(n)*s.opt.Draft.SlotBytes {
		return section{}, nil, false
	}
	skip := max(0, n-most)
	slots = slots[int64(skip)*s.opt.Draft.SlotBytes:]
	out := describe(s.opt.Draft.name(), slots)
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
	case s.opt.Draft.Key != "" && good(s.opt.Draft.name(), s.opt.Draft.Key) && from.First >= 0 &&
		from.Bytes == int64(s.opt.Draft.shared(tokens)-from.First)*s.opt.Draft.SlotBytes:
		d.First, d.Slots = from.First, data
	}
}

package disk

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"slipway/engine/memory"
	"slipway/engine/pass"
)

const slotBytes = 8

// head is a double of an MTP head: slot S is a number that follows from the final row of S and from token S+1, and from
// the slots before it.
type head struct{ slots []byte }

func rowAt(ids []int32, position int) []float32 {
	return []float32{float32(ids[position]) + float32(position)/4096, 0.5}
}

func (h *head) pair(row []float32, next int32) {
	before := uint64(1)
	if n := len(h.slots); n > 0 {
		before = binary.LittleEndian.Uint64(h.slots[n-slotBytes:])
	}
	h.slots = binary.LittleEndian.AppendUint64(h.slots, (before^uint64(math.Float32bits(row[0])))*0x9e3779b97f4a7c15+
		uint64(next))
}

// over is the head after all pairs that ids hold: slots 0 to len-2.
func over(ids []int32) *head {
	h := &head{}
	for i := 0; i+1 < len(ids); i++ {
		h.pair(rowAt(ids, i), ids[i+1])
	}
	return h
}

// drafted is a state with its head's slots from first on.
type drafted struct {
	content
	first int
}

func (d drafted) Hidden() []float32 { return rowAt(d.ids, len(d.ids)-1) }
func (d drafted) Slots() (int, []byte) {
	return d.first, over(d.ids).slots[d.first*slotBytes:]
}

// miscounted says another first slot than it gives.
type miscounted struct{ drafted }

func (m miscounted) Slots() (int, []byte) {
	_, slots := m.drafted.Slots()
	return 1, slots
}

func draftOptions(most int) Options {
	o := options()
	o.Draft = DraftOptions{Key: "mtp of r, f16", SlotBytes: slotBytes, MostSlots: most}
	return o
}

func saveState(t *testing.T, s *Store, ids []int32, state pass.State) {
	t.Helper()
	result := make(chan error, 1)
	s.Save(key, memory.KindTurn, false, ids, state, func(err error) { result <- err })
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

// The last slot of a prefix pairs with the token that follows, which is another one in each continuation.
func TestDraftContinuesFromAFileAsIfItHadSeenEverything(t *testing.T) {
	for _, n := range []int{1, 2, testPage, testPage + 1, 40} {
		s := open(t, filepath.Join(t.TempDir(), "c"), draftOptions(1000))
		ids := someIDs(5, n)
		cost, _ := s.Cost(key, memory.KindTurn, ids)
		saveState(t, s, ids, drafted{content{ids}, 0})
		saved, err := s.Load(key, ids)
		if err != nil {
			t.Fatal(err)
		}
		if d := saved.Draft; d.First != 0 || len(d.Slots) != memory.MTPShared(n)*slotBytes || len(d.Hidden) != 2 {
			t.Fatalf("%d tokens: slots from %d, %d bytes, row %v", n, d.First, len(d.Slots), d.Hidden)
		}
		for _, next := range []int32{7, 8} {
			h := &head{slots: bytes.Clone(saved.Draft.Slots)}
			h.pair(saved.Draft.Hidden, next)
			if want := over(append(ids[:n:n], next)); !bytes.Equal(h.slots, want.slots) {
				t.Errorf("%d tokens: completed with %d the slots are others than the head's own", n, next)
			}
		}
		_, whole := chain(key, ids, testPage)
		if info, err := os.Stat(s.path("points", whole)); err != nil || info.Size() > cost.Bytes {
			t.Errorf("%v: the file is larger than its cost %d: %+v", err, cost.Bytes, info)
		}
	}
}

func TestLongPrefixKeepsTheLastSlotsAlone(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "c"), draftOptions(10))
	ids := someIDs(6, 200)
	for _, first := range []int{0, 150, 195} { // what the draft itself still has
		s.opt.Draft.Key = string(rune('a' + first%26))
		ids := ids[:200-first%3]
		saveState(t, s, ids, drafted{content{ids}, first})
		saved, err := s.Load(key, ids)
		if err != nil {
			t.Fatal(err)
		}
		begin := max(first, memory.MTPShared(len(ids))-10)
		if d := saved.Draft; d.First != begin || !bytes.Equal(d.Slots, over(ids).slots[begin*slotBytes:]) {
			t.Errorf("slots from %d, %d bytes; wanted from %d on", d.First, len(d.Slots), begin)
		}
	}
}

func TestForeignOrMissingDraftLeavesThePointUsable(t *testing.T) {
	ids := someIDs(8, 40)
	for _, c := range []struct {
		name  string
		state pass.State
		then  func(*Options)
	}{
		{"the draft knows nothing", content{ids}, func(*Options) {}},
		{"it knows another number of slots than it says", miscounted{drafted{content{ids}, 0}}, func(*Options) {}},
		{"another head", drafted{content{ids}, 0}, func(o *Options) { o.Draft.Key = "mtp of another" }},
		{"another format under the same key", drafted{content{ids}, 0}, func(o *Options) { o.Draft.SlotBytes = 16 }},
		{"no draft runs", drafted{content{ids}, 0}, func(o *Options) { o.Draft = DraftOptions{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			s, err := Open(dir, draftOptions(1000))
			if err != nil {
				t.Fatal(err)
			}
			saveState(t, s, ids, c.state)
			finish(s)
			opt := draftOptions(1000)
			c.then(&opt)
			s = open(t, dir, opt)
			if len(s.Found()) != 1 {
				t.Fatalf("%d points found", len(s.Found()))
			}
			saved, err := s.Load(key, ids)
			if err != nil || len(saved.State) != testState {
				t.Fatalf("the point does not serve: %v", err)
			}
			if len(saved.Draft.Slots) != 0 {
				t.Errorf("slots of another draft come back: %d bytes", len(saved.Draft.Slots))
			}
		})
	}
}

// rows is a state with the context rows of a DFlash2 draft from first on.
type rows struct {
	content
	first int
}

func (r rows) Slots() (int, []byte) {
	all := make([]byte, 0, len(r.ids)*slotBytes)
	for i, id := range r.ids {
		all = binary.LittleEndian.AppendUint64(all, uint64(id)<<32|uint64(i))
	}
	return r.first, all[r.first*slotBytes:]
}

// A context row does not depend on the token that follows: a file has one for every token, the last ones of the window.
func TestContextRowsAreKeptUpToTheLastToken(t *testing.T) {
	const window = 5
	o := options()
	o.Draft = DraftOptions{Key: "draft of r", SlotBytes: slotBytes, MostSlots: window, DFlash2: true}
	for _, n := range []int{1, window, testPage + 1, 40} {
		folder := filepath.Join(t.TempDir(), "c")
		s := open(t, folder, o)
		ids := someIDs(6, n)
		first := max(0, n-window)
		saveState(t, s, ids, rows{content{ids}, first})
		saved, err := s.Load(key, ids)
		if err != nil {
			t.Fatal(err)
		}
		if _, want := (rows{content{ids}, first}).Slots(); saved.Draft.First != first ||
			!bytes.Equal(saved.Draft.Slots, want) {
			t.Errorf("%d tokens: rows from %d on, %d bytes", n, saved.Draft.First, len(saved.Draft.Slots))
		}
		s.opt.Draft = DraftOptions{Key: "draft of r", SlotBytes: slotBytes, MostSlots: 1000} // an MTP head of that key
		if saved, err = s.Load(key, ids); err != nil || len(saved.Draft.Slots) != 0 {
			t.Errorf("%d tokens: rows serve as slots of an MTP head: %v", n, err)
		}
	}
}

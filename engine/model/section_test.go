package model

import (
	"bytes"
	"testing"

	"slipway/engine/pass"
)

// What a draft beside the network knows goes with a state, is cut where the state is, and never reaches beyond it.
func TestStatesCarryADraftsSection(t *testing.T) {
	const row = 4
	n := load(t, pocketQ4, Options{WindowTokens: 512, MaxSequences: 2, ExtraPages: 4, TapeTokens: 32,
		SectionRow: row, SectionRows: 100})
	s, other := newSequence(t, n), newSequence(t, n)
	prompt := longPrompt(t, 200)
	known := pass.Section{First: 150, Rows: make([]byte, 60*row)}
	for i := range known.Rows {
		known.Rows[i] = byte(i)
	}
	s.OnSave(func() pass.Section { return known })
	forward(t, s, prompt, 512, pass.LogitsNone, nil)
	for i := range 10 { // on the tape
		forward(t, s, prompt[i:i+1], 512, pass.LogitsNone, nil)
	}
	state, err := s.Save(true)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Release()
	if state.Len() != 200 || state.Reach() != 210 {
		t.Fatalf("a state from %d to %d", state.Len(), state.Reach())
	}
	check := func(what string, got pass.Section, rows int) {
		t.Helper()
		if rows == 0 && got.Rows != nil || rows > 0 && (got.First != 150 || !bytes.Equal(got.Rows,
			known.Rows[:rows*row])) {
			t.Errorf("%s: %d bytes from %d on, wanted %d rows", what, len(got.Rows), got.First, rows)
		}
	}
	for at, rows := range map[int]int{200: 50, 205: 55, 210: 60} {
		other.Restore(state, at)
		check("restored", other.Section(), rows)
		settled, err := state.Settle(at)
		if err != nil {
			t.Fatal(err)
		}
		first, slots := settled.(*Point).Slots()
		check("settled", pass.Section{First: first, Rows: slots}, rows)
		settled.Release()
	}
	if held := state.(*Point).Bytes(); held < n.StateBytes()+60*row || n.PointBytes() != n.StateBytes()+100*row {
		t.Errorf("a point holds %d bytes, %d are counted", held, n.PointBytes())
	}
	s.OnSave(nil)
	without, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	defer without.Release()
	other.Restore(without, 210)
	check("a state without one", other.Section(), 0)
}

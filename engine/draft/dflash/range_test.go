package dflash

import (
	"context"
	"errors"
	"testing"

	"slipway/engine/device"
	"slipway/engine/draft"
	"slipway/engine/pass"
)

// broken is a pass whose run fails.
type broken struct {
	device.Pass
	err error
}

func (b broken) Run(context.Context) error { return b.err }

// A draft whose values are beyond the device's operands ends drafting, and no request. Other errors are a pass's.
func TestDraftBeyondTheDevicesRangeEndsDraftingAlone(t *testing.T) {
	w := newWorld(t, odd, 1, randomHead(97, 96))
	f := w.begin(0)
	w.advance(f, 20, 20)
	real := w.n.pass
	ask := greedy(f.draft, 1, 3)
	w.n.pass = broken{real, errors.New("the device is gone")}
	if err := w.p.Propose(t.Context(), []draft.Ask{ask}); err == nil {
		t.Error("a failed pass is not reported")
	}
	said := 0
	w.p.Off = func(error) { said++ }
	w.n.pass = broken{real, &device.RangeError{}}
	if err := w.p.Propose(t.Context(), []draft.Ask{ask}); err != nil || said != 1 || len(*ask.Drafted) != 0 {
		t.Errorf("%v, said %d times, %d tokens", err, said, len(*ask.Drafted))
	}
	w.n.pass = real
	segment := pass.Segment{Tokens: make([]int32, 4)}
	f.draft.Want(&segment)
	if err := f.draft.Kept(t.Context(), segment.Tokens); err != nil || segment.Taps != nil {
		t.Errorf("%v, taps of %d values after the end", err, len(segment.Taps))
	}
	if err := w.p.Propose(t.Context(), []draft.Ask{ask}); err != nil || len(*ask.Drafted) != 0 || said != 1 {
		t.Errorf("%v, %d tokens after the end, said %d times", err, len(*ask.Drafted), said)
	}
}

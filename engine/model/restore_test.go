package model

import (
	"context"
	"fmt"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// A restored state gives exactly the results of the saved state, wherever in a page the point is, whichever sequence
// continues first, and in a sequence other than the one that was saved.
func TestRestoredSequenceAnswersBitForBit(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 2, ExtraPages: 8})
	prompt := longPrompt(t, 700)
	other := append([]int32(nil), prompt[300:400]...)
	free := n.pages.Free()
	for _, at := range []int{1, 255, 256, 257, 300, 512} {
		t.Run(fmt.Sprintf("point at %d", at), func(t *testing.T) {
			fresh := newSequence(t, n)
			want := forward(t, fresh, prompt[:at+180], 512, pass.LogitsAll, nil)[at:]
			fresh.Close()

			s := newSequence(t, n)
			forward(t, s, prompt[:at], 512, pass.LogitsNone, nil)
			point, err := s.Save(false)
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, "after the point", forward(t, s, prompt[at:at+150], 64, pass.LogitsAll, nil), want[:150])

			branch := newSequence(t, n)
			branch.Restore(point, point.Len())
			if branch.Len() != at {
				t.Fatalf("restored at %d, wanted %d", branch.Len(), at)
			}
			forward(t, branch, other, 50, pass.LogitsNone, nil) // goes its own way in the shared page
			sameBits(t, "the first, which must not have noticed", forward(t, s, prompt[at+150:at+180], 30,
				pass.LogitsAll, nil), want[150:])
			branch.Restore(point, point.Len())
			sameBits(t, "in another sequence", forward(t, branch, prompt[at:at+150], 31, pass.LogitsAll, nil),
				want[:150])
			s.Restore(point, point.Len())
			sameBits(t, "in the same sequence", forward(t, s, prompt[at:at+180], 150, pass.LogitsAll, nil), want)
			point.Release()
			branch.Close()
			s.Close()
			if n.pages.Free() != free {
				t.Errorf("%d pages free, %d before: some were lost", n.pages.Free(), free)
			}
		})
	}
}

func TestMTPHeadIsRestoredWithItsSequence(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 2, ExtraPages: 4, Draft: DraftMTP})
	prompt := longPrompt(t, 400)
	h := n.config.Hidden
	hidden := make([]float32, 300*h)
	s := newSequence(t, n)
	forward(t, s, prompt[:300], 300, pass.LogitsNone, hidden)
	mtp := func(s *Sequence, slot, count int, shift int32) [][]float32 {
		t.Helper()
		tokens := append([]int32(nil), prompt[slot+1:slot+1+count]...)
		tokens[0] = (tokens[0] + shift) % 4000
		rows, err := n.MTP(context.Background(), []pass.HeadSegment{
			{Seq: s, Slot: slot, Tokens: tokens, Hidden: hidden[slot*h:], Logits: pass.LogitsAll}})
		if err != nil {
			t.Fatal(err)
		}
		var out [][]float32
		for _, r := range rows[0] {
			out = append(out, append([]float32(nil), r...))
		}
		return out
	}
	mtp(s, 0, 257, 0)
	point, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	defer point.Release()
	want := mtp(s, 257, 20, 0)
	branch := newSequence(t, n)
	branch.Restore(point, point.Len())
	mtp(branch, 257, 20, 5)
	mtp(branch, 250, 27, 0) // slots dropped and written again, as after rejected drafts
	sameBits(t, "after dropped slots", mtp(branch, 257, 20, 0), want)
	branch.Restore(point, point.Len())
	sameBits(t, "after restore", mtp(branch, 257, 20, 0), want)
	sameBits(t, "in its own sequence", mtp(s, 257, 20, 0), want)
}

// A handle that was closed, and is closed once more, must not end the sequence that has its place now.
func TestClosedHandleDoesNotEndItsSuccessor(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 512, MaxSequences: 1})
	prompt := longPrompt(t, 40)
	first := newSequence(t, n)
	want := forward(t, first, prompt, 40, pass.LogitsAll, nil)
	first.Close()
	second := newSequence(t, n)
	got := forward(t, second, prompt[:20], 20, pass.LogitsAll, nil)
	first.Close()
	got = append(got, forward(t, second, prompt[20:], 20, pass.LogitsAll, nil)...)
	sameBits(t, "successor", got, want)
	if _, err := n.NewSequence(); err != ErrNoPages {
		t.Fatalf("the second Close gave a place back twice: error %v", err)
	}
}

// broken is a device whose passes fail after they did their work: the worst moment for a state.
type broken struct {
	device.Device
	fail bool
}

type brokenPass struct {
	device.Pass
	dev *broken
}

func (b *broken) NewPass() device.Pass { return brokenPass{b.Device.NewPass(), b} }

func (p brokenPass) Run(ctx context.Context) error {
	if err := p.Pass.Run(ctx); err != nil {
		return err
	}
	if p.dev.fail {
		return fmt.Errorf("command buffer: page fault")
	}
	return nil
}

func TestFailedPassLosesTheSequenceUntilItIsRestored(t *testing.T) {
	ckpt, err := weights.Open(pocketQ4)
	if err != nil {
		t.Fatal(err)
	}
	dev := &broken{Device: cpu.New(0)}
	t.Cleanup(func() { dev.Close(); ckpt.Close() })
	n, err := Load(dev, ckpt, Options{WindowTokens: 1024, MaxSequences: 1, ExtraPages: 2})
	if err != nil {
		t.Fatal(err)
	}
	prompt := longPrompt(t, 200)
	s := newSequence(t, n)
	forward(t, s, prompt[:100], 100, pass.LogitsNone, nil)
	point, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	want := forward(t, s, prompt[100:], 100, pass.LogitsAll, nil)
	s.Restore(point, point.Len())
	dev.fail = true
	if _, err := n.Forward(context.Background(), []pass.Segment{{Seq: s, Tokens: prompt[100:]}}); err == nil {
		t.Fatal("the failure was not reported")
	}
	dev.fail = false
	if s.Len() != 100 {
		t.Fatalf("moved to %d", s.Len())
	}
	if _, err := n.Forward(context.Background(), []pass.Segment{
		{Seq: s, Tokens: prompt[100:]}}); err != ErrSequenceLost {
		t.Fatalf("error %v, wanted ErrSequenceLost", err)
	}
	if _, err := s.Save(false); err != ErrSequenceLost {
		t.Fatalf("a snapshot of a lost state: error %v", err)
	}
	s.Restore(point, point.Len())
	sameBits(t, "after restore", forward(t, s, prompt[100:], 100, pass.LogitsAll, nil), want)
}

package model

import (
	"context"
	"fmt"
	"math"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/device/cpu/kernels"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// sameBits fails at the first value that is not equal bit for bit.
func sameBits(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, wanted %d", what, len(got), len(want))
	}
	for i := range want {
		for j := range want[i] {
			if math.Float32bits(got[i][j]) != math.Float32bits(want[i][j]) {
				t.Fatalf("%s: row %d value %d is %v, wanted %v", what, i, j, got[i][j], want[i][j])
			}
		}
	}
}

// longPrompt is real text of n tokens that crosses pages.
func longPrompt(t *testing.T, n int) []int32 {
	t.Helper()
	ids := readOracle(t, "oracle-q4.json")["raw"].IDs
	if len(ids) < n {
		t.Fatalf("the prompt has %d tokens, wanted %d", len(ids), n)
	}
	return ids[:n]
}

func TestLogitsDoNotDependOnHowAPromptIsCut(t *testing.T) {
	for _, form := range []struct{ name, dir string }{{"4-bit", pocketQ4}, {"BF16", pocketBF16}} {
		t.Run(form.name, func(t *testing.T) {
			n := load(t, form.dir, Options{WindowTokens: 1024, MaxSequences: 2})
			prompt := longPrompt(t, 700)
			whole := newSequence(t, n)
			want := forward(t, whole, prompt[:512], 512, pass.LogitsAll, nil)
			want = append(want, forward(t, whole, prompt[512:], 512, pass.LogitsAll, nil)...)
			for _, chunk := range []int{1, 7, 64, 511} {
				s := newSequence(t, n)
				sameBits(t, fmt.Sprintf("chunks of %d", chunk), forward(t, s, prompt, chunk, pass.LogitsAll, nil), want)
				s.Close()
			}
			// Ragged: chunks of every size in turn.
			s := newSequence(t, n)
			var got [][]float32
			for at, size := 0, 1; at < len(prompt); size = size%37 + 5 {
				end := min(at+size, len(prompt))
				got = append(got, forward(t, s, prompt[at:end], size, pass.LogitsAll, nil)...)
				at = end
			}
			sameBits(t, "ragged chunks", got, want)
		})
	}
}

func TestLogitsDoNotDependOnThreads(t *testing.T) {
	prompt := longPrompt(t, 300)
	var want [][]float32
	for _, threads := range []int{1, 2, 3, 7} {
		ckpt, err := weights.Open(pocketQ4)
		if err != nil {
			t.Fatal(err)
		}
		dev := cpu.New(threads)
		n, err := Load(dev, ckpt, Options{WindowTokens: 512, MaxSequences: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := newSequence(t, n)
		got := forward(t, s, prompt, 300, pass.LogitsAll, nil)
		got = append(got, forward(t, s, prompt[:3], 1, pass.LogitsAll, nil)...)
		if want == nil {
			want = got
		}
		sameBits(t, fmt.Sprintf("%d threads", threads), got, want)
		s.Close()
		dev.Close()
		ckpt.Close()
	}
}

func TestLogitsDoNotDependOnTheInstructionSet(t *testing.T) {
	best := kernels.Active()
	defer kernels.Use(best)
	prompt := longPrompt(t, 70)
	for _, dir := range []string{pocketQ4, pocketBF16} {
		n := load(t, dir, Options{WindowTokens: 512, MaxSequences: 1})
		var want [][]float32
		for _, isa := range kernels.Available() {
			if err := kernels.Use(isa); err != nil {
				t.Fatal(err)
			}
			s := newSequence(t, n)
			got := forward(t, s, prompt[:60], 60, pass.LogitsAll, nil)
			got = append(got, forward(t, s, prompt[60:], 1, pass.LogitsAll, nil)...)
			s.Close()
			if want == nil {
				want = got
			}
			sameBits(t, isa.String(), got, want)
		}
	}
}

func TestSequencesInAPassDoNotTouchEachOther(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 3})
	prompt := longPrompt(t, 700)
	a, b := prompt[:600], prompt[100:420]
	alone := func(p []int32) [][]float32 {
		s := newSequence(t, n)
		defer s.Close()
		return append(forward(t, s, p[:len(p)/2], 512, pass.LogitsAll, nil),
			forward(t, s, p[len(p)/2:], 512, pass.LogitsAll, nil)...)
	}
	wantA, wantB := alone(a), alone(b)
	sa, sb := newSequence(t, n), newSequence(t, n)
	var gotA, gotB [][]float32
	// A prefills in chunks of 90 while B goes in steps of 1 to 5, both in one pass.
	for i := 0; sa.Len() < len(a) || sb.Len() < len(b); i++ {
		var segs []pass.Segment
		if sa.Len() < len(a) {
			segs = append(segs, pass.Segment{Seq: sa, Tokens: a[sa.Len():min(sa.Len()+90, len(a))],
				Logits: pass.LogitsAll})
		}
		if sb.Len() < len(b) {
			segs = append(segs, pass.Segment{Seq: sb, Tokens: b[sb.Len():min(sb.Len()+1+i%5, len(b))],
				Logits: pass.LogitsAll})
		}
		rows, err := n.Forward(context.Background(), segs)
		if err != nil {
			t.Fatal(err)
		}
		for j, g := range segs {
			for _, r := range rows[j] {
				r = append([]float32(nil), r...)
				if g.Seq == sa {
					gotA = append(gotA, r)
				} else {
					gotB = append(gotB, r)
				}
			}
		}
	}
	sameBits(t, "prefilling sequence", gotA, wantA)
	sameBits(t, "stepping sequence", gotB, wantB)
}

func TestCancelledPassHasNotMovedTheSequence(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 1})
	prompt := longPrompt(t, 300)
	s := newSequence(t, n)
	forward(t, s, prompt[:100], 100, pass.LogitsNone, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := n.Forward(ctx, []pass.Segment{{Seq: s, Tokens: prompt[100:300]}}); err != context.Canceled {
		t.Fatalf("error %v, wanted context.Canceled", err)
	}
	if s.Len() != 100 {
		t.Fatalf("moved to %d", s.Len())
	}
	got := forward(t, s, prompt[100:300], 200, pass.LogitsAll, nil)
	s.Close()
	fresh := newSequence(t, n)
	sameBits(t, "after the cancelled pass", got, forward(t, fresh, prompt, 300, pass.LogitsAll, nil)[100:])
}

func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 2048, MaxSequences: 2})
	prompt := longPrompt(t, 64)
	a, b := newSequence(t, n), newSequence(t, n)
	forward(t, a, prompt, 64, pass.LogitsLast, nil)
	forward(t, b, prompt, 64, pass.LogitsLast, nil)
	ctx := context.Background()
	token := []int32{prompt[0]}
	both := []pass.Segment{{Seq: a, Tokens: token, Logits: pass.LogitsLast},
		{Seq: b, Tokens: token, Logits: pass.LogitsLast}}
	chunk := []pass.Segment{{Seq: b, Tokens: prompt[:32]}}
	step := func(segs []pass.Segment) func() {
		return func() {
			if _, err := n.Forward(ctx, segs); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, row := range []struct {
		name string
		segs []pass.Segment
	}{{"decode of one", both[:1]}, {"decode of two", both}, {"prefill chunk", chunk}} {
		if allocs := testing.AllocsPerRun(20, step(row.segs)); allocs != 0 {
			t.Errorf("%s: %v allocations", row.name, allocs)
		}
	}
}

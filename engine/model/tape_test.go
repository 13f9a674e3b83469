package model

import (
	"fmt"
	"slices"
	"testing"

	"slipway/engine/device"
	"slipway/engine/pass"
)

// Every rewind, from every length of the tape, whether the base has moved or not, leaves the logits that a fresh
// sequence has.
func TestRewindRestoresTheEarlierBits(t *testing.T) {
	for _, form := range []struct{ name, dir string }{{"4-bit", pocketQ4}, {"BF16", pocketBF16}} {
		t.Run(form.name, func(t *testing.T) {
			n := load(t, form.dir, Options{WindowTokens: 1024, MaxSequences: 2, TapeTokens: 64})
			prompt := longPrompt(t, 500)
			const prefill = 250 // the decoded tokens cross a page
			whole := newSequence(t, n)
			want := forward(t, whole, prompt, 512, pass.LogitsAll, nil)
			whole.Close()
			for _, c := range []struct{ decoded, step, back int }{{1, 1, 1}, {3, 1, 2}, {40, 1, 40}, {64, 1, 64},
				{95, 1, 64}, {96, 1, 64}, {97, 1, 65}, {200, 1, 64}, {200, 1, 1}, {120, 5, 63}, {160, 16, 64},
				{7, 7, 3}} {
				s := newSequence(t, n)
				forward(t, s, prompt[:prefill], 512, pass.LogitsNone, nil)
				forward(t, s, prompt[prefill:prefill+c.decoded], c.step, pass.LogitsNone, nil)
				if s.TapeLen() < min(c.decoded, 64) {
					t.Fatalf("%+v: %d tokens can be taken back", c, s.TapeLen())
				}
				s.Rewind(c.back)
				at := prefill + c.decoded - c.back
				if s.Len() != at {
					t.Fatalf("%+v: length %d", c, s.Len())
				}
				sameBits(t, fmt.Sprintf("%+v, decoded on", c), forward(t, s, prompt[at:at+9], 1, pass.LogitsAll, nil),
					want[at:at+9])
				s.Rewind(5) // again, after going on
				sameBits(t, fmt.Sprintf("%+v, prefilled on", c), forward(t, s, prompt[at+4:], 512, pass.LogitsAll, nil),
					want[at+4:])
				s.Close()
			}
		})
	}
}

func TestPointWithATapeServesEveryLength(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 2, TapeTokens: 64, ExtraPages: 8})
	prompt := longPrompt(t, 500)
	whole := newSequence(t, n)
	want := forward(t, whole, prompt, 512, pass.LogitsAll, nil)
	whole.Close()
	s := newSequence(t, n)
	forward(t, s, prompt[:240], 512, pass.LogitsNone, nil)
	forward(t, s, prompt[240:275], 1, pass.LogitsNone, nil)
	point, err := s.Save(true)
	if err != nil {
		t.Fatal(err)
	}
	defer point.Release()
	forward(t, s, prompt[275:400], 1, pass.LogitsNone, nil) // the sequence continues in the shared page
	s.Close()
	if point.Len() != 240 || point.Reach() != 275 {
		t.Fatalf("the point serves [%d,%d]", point.Len(), point.Reach())
	}
	for at := point.Len(); at <= point.Reach(); at++ {
		s := newSequence(t, n)
		s.Restore(point, at)
		sameBits(t, fmt.Sprintf("restored at %d", at), forward(t, s, prompt[at:at+3], 1, pass.LogitsAll, nil),
			want[at:at+3])
		s.Close()
		settled, err := point.Settle(at)
		if err != nil {
			t.Fatal(err)
		}
		s = newSequence(t, n)
		s.Restore(settled, settled.Len())
		settled.Release()
		sameBits(t, fmt.Sprintf("settled at %d", at), forward(t, s, prompt[at:at+20], 20, pass.LogitsAll, nil),
			want[at:at+20])
		s.Close()
	}
}

func TestPrefillEmptiesTheTape(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 512, MaxSequences: 1, TapeTokens: 64})
	prompt := longPrompt(t, 200)
	s := newSequence(t, n)
	forward(t, s, prompt[:20], 1, pass.LogitsNone, nil)
	forward(t, s, prompt[20:20+device.TapeSegment+1], 512, pass.LogitsNone, nil)
	if s.TapeLen() != 0 {
		t.Fatalf("%d tokens of a prefill can be taken back", s.TapeLen())
	}
	defer func() {
		if recover() == nil {
			t.Error("a rewind past the tape went through")
		}
	}()
	s.Rewind(1)
}

func TestImportedPointGivesTheSameBits(t *testing.T) {
	t.Run("native", func(t *testing.T) { testImport(t, device.KVNative) })
	t.Run("q8", func(t *testing.T) { testImport(t, device.KVQ8) })
}

func testImport(t *testing.T, format device.KVFormat) {
	n := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 2, ExtraPages: 12, KVFormat: format,
		Draft: DraftMTP})
	other := load(t, pocketQ4, Options{WindowTokens: 1024, MaxSequences: 1, ExtraPages: 4, KVFormat: format,
		Draft: DraftMTP})
	prompt := longPrompt(t, 600)
	whole := newSequence(t, n)
	want := forward(t, whole, prompt, 512, pass.LogitsAll, nil)
	whole.Close()
	for _, length := range []int{1, 255, 256, 257, 513} {
		s := newSequence(t, n)
		forward(t, s, prompt[:length], 512, pass.LogitsNone, nil)
		point, err := s.Save(false)
		if err != nil {
			t.Fatal(err)
		}
		forward(t, s, prompt[length:length+1], 512, pass.LogitsNone, nil)
		s.Close()
		state := make([]byte, n.StateBytes())
		point.ReadState(state)
		pages := 0
		read := func(index, tokens int) ([]byte, error) {
			pages++
			data := make([]byte, n.PositionBytes(tokens))
			point.ReadPage(data, index, tokens)
			return data, nil
		}
		copied, err := other.Import(length, state, point.Hidden(), nil, 0, read)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := n.Import(length, state, nil, point, length/device.PageTokens, read)
		if err != nil {
			t.Fatal(err)
		}
		for _, back := range []struct {
			name string
			net  *Network
			p    *Point
		}{{"into another network", other, copied}, {"sharing pages", n, shared}} {
			s := newSequence(t, back.net)
			s.Restore(back.p, back.p.Len())
			if back.p == copied && !slices.Equal(s.last, point.Hidden()) {
				t.Fatalf("%d tokens: the hidden row did not come back", length)
			}
			got := forward(t, s, prompt[length:], 512, pass.LogitsAll, nil)
			if length+len(got) > len(want) {
				t.Fatal("too many rows")
			}
			sameBits(t, fmt.Sprintf("%d tokens %s", length, back.name), got, want[length:])
			s.Close()
			back.p.Release()
		}
		point.Release()
		if free := n.pages.Free(); free != n.pages.Len() {
			t.Fatalf("%d pages are not given back", n.pages.Len()-free)
		}
	}
}

// The MTP head's last slot pairs with the token that follows; a branch that continues with another token must not find
// it.
func TestPointSharesMTPSlotsButTheLast(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 512, MaxSequences: 2, ExtraPages: 4, Draft: DraftMTP})
	prompt := longPrompt(t, 120)
	h := n.config.Hidden
	s := newSequence(t, n)
	hidden := make([]float32, 100*h)
	forward(t, s, prompt[:100], 512, pass.LogitsNone, hidden)
	if _, err := n.MTP(t.Context(), []pass.HeadSegment{{Seq: s, Tokens: prompt[1:101], Hidden: hidden}}); err != nil {
		t.Fatal(err)
	}
	point, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	defer point.Release()
	s.Close()
	branch := newSequence(t, n)
	branch.Restore(point, point.Len())
	if branch.MTPLen() != 99 {
		t.Fatalf("%d slots are shared of 100 tokens, wanted 99", branch.MTPLen())
	}
	if !slices.Equal(point.Hidden(), hidden[99*h:]) {
		t.Fatal("the kept row is not the final row of the last token")
	}
	// Completed with the token that really comes, the head says what one says that never branched.
	fresh := newSequence(t, n)
	freshHidden := make([]float32, 100*h)
	forward(t, fresh, prompt[:100], 512, pass.LogitsNone, freshHidden)
	other := append(slices.Clone(prompt[1:100]), 7)
	rows, err := n.MTP(t.Context(), []pass.HeadSegment{
		{Seq: fresh, Tokens: other, Hidden: freshHidden, Logits: pass.LogitsLast}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{slices.Clone(rows[0][0])}
	rows, err = n.MTP(t.Context(), []pass.HeadSegment{
		{Seq: branch, Slot: 99, Tokens: []int32{7}, Hidden: point.Hidden(), Logits: pass.LogitsLast}})
	if err != nil {
		t.Fatal(err)
	}
	sameBits(t, "slot completed after a restore", [][]float32{slices.Clone(rows[0][0])}, want)
}

func TestSizeOfAPointOfThe27B(t *testing.T) {
	n := &Network{stateGeometry: device.StateGeometry{Layers: 48, KeyHeads: 16, ValueHeads: 48, KeyDim: 128,
		ValueDim: 128, ConvChannels: 10240, ConvTaps: 4}}
	if got := float64(n.PointBytes()) / (1 << 20); fmt.Sprintf("%.1f", got) != "149.6" {
		t.Errorf("%.4f MiB", got)
	}
}

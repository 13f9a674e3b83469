package accept_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/draft"
	"slipway/engine/draft/accept"
	"slipway/engine/draft/dflash"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/weights"
)

// blocks draws two tokens behind a prompt with a DFlash2 draft of two, from logits that are cached by prefix. A block
// is proposed behind the prompt's last token, or behind a first token that verification gave.
type blocks struct {
	t        *testing.T
	n        *model.Network
	proposer *dflash.Proposer
	before   *model.Sequence // the prompt without its last token
	whole    *model.Sequence
	behind   [2]draft.Context // of before, of whole
	last     int32

	targets map[int32][]float32 // logits behind the prompt (-1) and behind a first token
	first   draft.Row           // the block's first row
	second  map[int32]draft.Row // its second one, by first token
	single  map[int32]draft.Row // the row of a block behind a first token
}

func openBlocks(t *testing.T, prompt []int32) *blocks {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ckpt, err := weights.Open("../../../manifests/pocket")
	must(err)
	t.Cleanup(func() { ckpt.Close() })
	files, err := dflash.Open("../../../manifests/pocket")
	must(err)
	t.Cleanup(func() { files.Close() })
	dev := cpu.New(0)
	t.Cleanup(func() { dev.Close() })
	n, err := model.Load(dev, ckpt, model.Options{WindowTokens: 1024, MaxSequences: 2, TapeTokens: 16,
		TapLayers: files.Config.Taps})
	must(err)
	d, err := dflash.Load(dev, files, dflash.Options{Embedding: n.Embedding(), Head: n.Head(), Sequences: 2})
	must(err)
	b := &blocks{t: t, n: n, proposer: dflash.NewProposer(files.Config, func() *dflash.Network { return d }, 7),
		last: prompt[len(prompt)-1], targets: map[int32][]float32{}, second: map[int32]draft.Row{},
		single: map[int32]draft.Row{}}
	follow := func(tokens []int32) (*model.Sequence, draft.Context) {
		s, err := n.NewSequence()
		must(err)
		c := b.proposer.Begin(s, tokens)
		segment := pass.Segment{Seq: s, Tokens: tokens}
		c.Want(&segment)
		_, err = n.Forward(t.Context(), []pass.Segment{segment})
		must(err)
		must(c.Kept(t.Context(), tokens))
		return s, c
	}
	b.before, b.behind[0] = follow(prompt[:len(prompt)-1])
	b.whole, b.behind[1] = follow(prompt)
	return b
}

// target gives the network's logits behind the prompt (-1) or behind a first token.
func (b *blocks) target(first int32) []float32 {
	if row, known := b.targets[first]; known {
		return row
	}
	seq, token := b.whole, first
	if first < 0 {
		seq, token = b.before, b.last
	}
	rows, err := b.n.Forward(b.t.Context(), []pass.Segment{{Seq: seq, Tokens: []int32{token}, Logits: pass.LogitsLast}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.targets[first] = slices.Clone(rows[0][0])
	seq.Rewind(1)
	return b.targets[first]
}

// propose gives the rows of a block in which the first token is forced.
func (b *blocks) propose(whole int, anchor, forced int32, most int) (rows []draft.Row) {
	err := b.proposer.Propose(b.t.Context(), []draft.Ask{{Context: b.behind[whole], Last: anchor, Most: most,
		Drafted: new([]accept.Drafted), Choose: func(row draft.Row) (*accept.Drafted, bool) {
			rows = append(rows, draft.Row{IDs: slices.Clone(row.IDs), Logits: slices.Clone(row.Logits)})
			return &accept.Drafted{ID: forced}, true
		}}})
	if err != nil || len(rows) != most {
		b.t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows
}

// behindFirst are the rows of the block's second place, and of a new block, behind a first token.
func (b *blocks) behindFirst(first int32) (second, single draft.Row) {
	if _, known := b.second[first]; !known {
		rows := b.propose(0, b.last, first, 2)
		b.first, b.second[first] = rows[0], rows[1]
		b.single[first] = b.propose(1, first, first, 1)[0]
	}
	return b.second[first], b.single[first]
}

// pairs draws with one setting.
type pairs struct {
	b       *blocks
	sampler *sample.Sampler
	params  sample.Params
	known   map[string]sample.Distribution
}

func (p *pairs) target(first int32) sample.Distribution {
	return p.once(fmt.Sprint("target ", first), func() (sample.Distribution, error) {
		return p.sampler.Distribution(p.b.target(first), p.params, nil, nil)
	})
}

func (p *pairs) draft(what string, first int32, row draft.Row) sample.Distribution {
	return p.once(fmt.Sprint(what, first), func() (sample.Distribution, error) {
		return p.sampler.DistributionAmong(row.IDs, row.Logits, p.params, nil, nil)
	})
}

func (p *pairs) once(key string, make func() (sample.Distribution, error)) sample.Distribution {
	d, known := p.known[key]
	if !known {
		made, err := make()
		if err != nil {
			p.b.t.Fatal(err)
		}
		d = sample.Distribution{IDs: slices.Clone(made.IDs), Probs: slices.Clone(made.Probs)}
		p.known[key] = d
	}
	return d
}

// draw gives two tokens, drafted and verified as a reply's are.
func (p *pairs) draw(random func() float64) (first, second int32) {
	q := p.draft("first ", 0, p.b.first)
	a := q.Pick(random())
	row, _ := p.b.behindFirst(a)
	other := p.draft("second ", a, row)
	drafted := []accept.Drafted{{ID: a, Q: q}, {ID: other.Pick(random()), Q: other}}
	n, next, err := accept.Verify(drafted, func(i int) (sample.Distribution, error) {
		if i == 0 {
			return p.target(-1), nil
		}
		return p.target(a), nil // a third token is not looked at
	}, random)
	switch {
	case err != nil:
		p.b.t.Fatal(err)
	case n == 2:
		return a, drafted[1].ID
	case n == 1:
		return a, next
	}
	first = next
	_, row = p.b.behindFirst(first)
	q = p.draft("single ", first, row)
	token := accept.Drafted{ID: q.Pick(random()), Q: q}
	n, second, err = accept.Verify([]accept.Drafted{token}, func(int) (sample.Distribution, error) {
		return p.target(first), nil
	}, random)
	if err != nil {
		p.b.t.Fatal(err)
	}
	if n == 1 {
		second = token.ID
	}
	return first, second
}

func TestSampledBlocksAreDistributedAsWithoutADraft(t *testing.T) {
	draws, names := 30_000, []string{"chat"}
	if os.Getenv("SLIPWAY_SOAK") != "" {
		draws, names = 100_000, append(names, "raw", "unicode")
	}
	all, sampler := prompts(t), sample.NewSampler(4096)
	for _, name := range names {
		prompt := all[name]
		b := openBlocks(t, prompt[:min(len(prompt), 200)])
		b.behindFirst(0)
		for _, temperature := range []float64{0.3, 1, 1.5} {
			for _, cut := range []bool{true, false} {
				if name != "chat" && !cut {
					continue // Pocket babbles: thousands of prefixes, for minutes
				}
				params := sample.Neutral()
				params.Temperature = temperature
				if cut {
					params.TopP, params.TopK = 0.95, 20
				}
				what := fmt.Sprintf("%s, temperature %v, truncated %v", name, temperature, cut)
				p := &pairs{b, sampler, params, map[string]sample.Distribution{}}
				random := sample.NewGenerator(23).Float64
				firsts, both := map[int32]float64{}, map[[2]int32]float64{}
				for range draws {
					x, y := p.draw(random)
					firsts[x]++
					both[[2]int32{x, y}]++
				}
				want, wantBoth := map[int32]float64{}, map[[2]int32]float64{}
				root := p.target(-1)
				for i, id := range root.IDs {
					if want[id] = root.Probs[i] * float64(draws); want[id] < 5 {
						continue // its pairs are pooled
					}
					next := p.target(id)
					for k, other := range next.IDs {
						wantBoth[[2]int32{id, other}] = want[id] * next.Probs[k]
					}
				}
				check(t, what+", first tokens", firsts, want, draws)
				check(t, what+", pairs", both, wantBoth, draws)
			}
		}
	}
}

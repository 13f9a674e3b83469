package dflash

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/draft"
	"slipway/engine/draft/accept"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

const pocketDir = "../../../manifests/pocket"

// answer is what the reference outputs say of a prompt.
type answer struct {
	IDs         []int32
	Tokens      []int32
	Steps       []step
	StepsOfFour []step `json:"steps_block_4"`
	First       struct {
		Candidates     [][]int32
		Logits, Scores [][]float32
	}
}

// step is one block and how many of its tokens the target took.
type step struct {
	Start    int
	Anchor   int32
	Drafted  []int32
	Accepted int
}

func answers(t testing.TB, form string) (a map[string]answer) {
	t.Helper()
	raw, err := os.ReadFile("testdata/oracle/draft-" + form + ".json")
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err != nil || len(a) != 9 {
		t.Fatalf("%d prompts, %v", len(a), err)
	}
	return a
}

// target is Pocket with taps, and a draft for it.
type target struct {
	t      testing.TB
	n      *model.Network
	drafts map[string]*Network
}

func openTarget(t testing.TB, forms ...string) *target {
	t.Helper()
	ckpt, err := weights.Open(pocketDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	dev := cpu.New(0)
	t.Cleanup(func() { dev.Close() })
	from, err := Open("testdata/bf16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close() })
	n, err := model.Load(dev, ckpt, model.Options{WindowTokens: 8192, MaxSequences: 3, TapeTokens: 64, ExtraPages: 64,
		TapLayers:  from.Config.Taps,
		SectionRow: 2 * from.Config.Hidden, SectionRows: from.Config.Window})
	if err != nil {
		t.Fatal(err)
	}
	g := &target{t, n, map[string]*Network{}}
	for _, form := range forms {
		d, err := Load(dev, from, Options{Embedding: n.Embedding(), Head: n.Head(), Sequences: 3,
			Quantize: form == "q4"})
		if err != nil {
			t.Fatal(err)
		}
		g.drafts[form] = d
	}
	return g
}

func (g *target) proposer(form string, most int) *Proposer {
	d := g.drafts[form]
	return NewProposer(d.config, func() *Network { return d }, most)
}

// forward runs one segment with what the draft wants of it.
func (g *target) forward(s *model.Sequence, c draft.Context, tokens []int32, wanted pass.Logits) [][]float32 {
	segment := pass.Segment{Seq: s, Tokens: tokens, Logits: wanted}
	c.Want(&segment)
	rows, err := g.n.Forward(g.t.Context(), []pass.Segment{segment})
	if err != nil {
		g.t.Fatal(err)
	}
	return rows[0]
}

func (g *target) kept(c draft.Context, tokens []int32) {
	if err := c.Kept(g.t.Context(), tokens); err != nil {
		g.t.Fatal(err)
	}
}

// largest is the place of the largest value.
func largest(values []float32) (id int32) {
	for i, v := range values {
		if v > values[id] {
			id = int32(i)
		}
	}
	return id
}

// prefilled is a target behind a prompt: a state, and what a draft is given of its last rows.
type prefilled struct {
	ids    []int32
	state  pass.State
	taps   []float32
	anchor int32
}

func (g *target) prefill(ids []int32) prefilled {
	s, err := g.n.NewSequence()
	if err != nil {
		g.t.Fatal(err)
	}
	defer s.Close()
	width := len(g.drafts["bf16"].config.Taps) * g.n.Config().Hidden
	p := prefilled{ids: ids, taps: make([]float32, width*min(len(ids), 300))}
	var last []float32
	for at := 0; at < len(ids); {
		n := min(len(ids)-at, g.n.ChunkTokens())
		if rest := len(ids) - at; n < rest && rest < n+300 {
			n = rest - 300 // so that the last chunk has all rows that matter
		}
		rows, err := g.n.Forward(g.t.Context(), []pass.Segment{{Seq: s, Tokens: ids[at : at+n], Logits: pass.LogitsLast,
			Taps: p.taps}})
		if err != nil {
			g.t.Fatal(err)
		}
		last, at = rows[0][0], at+n
	}
	p.anchor = largest(last)
	if p.state, err = s.Save(false); err != nil {
		g.t.Fatal(err)
	}
	return p
}

// begin opens a sequence behind a prompt, and a draft's context that has seen its last rows.
func (g *target) begin(p *Proposer, from prefilled) (*model.Sequence, *sequence) {
	s, err := g.n.NewSequence()
	if err != nil {
		g.t.Fatal(err)
	}
	s.Restore(from.state, len(from.ids))
	c := p.Begin(s, from.ids).(*sequence)
	c.taps = from.taps
	g.kept(c, from.ids)
	return s, c
}

// closeGap is how close two values may be to change places where sums are made in another order. Of two that are
// closer the reference's is taken, so that what follows can be compared.
const closeGap = 0.001

// chosen is the largest value's place, or that of wanted (-1: none) where it is close to it.
func chosen(values []float32, wanted int) int {
	best := largest(values)
	if wanted >= 0 && values[best]-values[wanted] <= closeGap {
		return wanted
	}
	return int(best)
}

// propose gives a block's tokens by greedy choice.
func propose(t testing.TB, p *Proposer, c draft.Context, anchor int32, want []int32) (ids []int32) {
	t.Helper()
	var drafted []accept.Drafted
	err := p.Propose(t.Context(), []draft.Ask{{Context: c, Last: anchor, Most: p.most, Drafted: &drafted,
		Choose: func(row draft.Row) (*accept.Drafted, bool) {
			id := row.IDs[chosen(row.Logits, slices.Index(row.IDs, want[len(ids)]))]
			ids = append(ids, id)
			return &accept.Drafted{ID: id}, true
		}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != len(drafted) {
		t.Fatalf("%d tokens were chosen, %d proposed", len(ids), len(drafted))
	}
	return ids
}

// decode answers greedily and compares every block and what is accepted of it.
func (g *target) decode(t *testing.T, p *Proposer, from prefilled, want []step) {
	s, c := g.begin(p, from)
	defer s.Close()
	defer c.End()
	const limit = 80
	out, anchor := 1, from.anchor
	for i, w := range want {
		if s.Len() != w.Start || anchor != w.Anchor {
			t.Fatalf("block %d of %d: at %d behind %d, wanted at %d behind %d", i, len(want), s.Len(), anchor, w.Start,
				w.Anchor)
		}
		got := propose(t, p, c, anchor, w.Drafted)
		if !slices.Equal(got, w.Drafted) {
			t.Fatalf("block %d of %d: drafted %v, wanted %v", i, len(want), got, w.Drafted)
		}
		tokens := append([]int32{anchor}, got...)
		rows := g.forward(s, c, tokens, pass.LogitsAll)
		accepted := 0
		for ; accepted < len(got) && out < limit; out++ {
			wanted := -1
			if accepted < w.Accepted {
				wanted = int(got[accepted])
			}
			next := int32(chosen(rows[accepted], wanted))
			if next != got[accepted] {
				break
			}
			if accepted++; next == 4088 || next == 4086 {
				break
			}
		}
		if accepted != w.Accepted {
			t.Fatalf("block %d of %d: %d accepted, wanted %d", i, len(want), accepted, w.Accepted)
		}
		wanted := -1
		if i+1 < len(want) {
			wanted = int(want[i+1].Anchor)
		}
		anchor = int32(chosen(rows[accepted], wanted))
		s.Rewind(len(tokens) - accepted - 1)
		g.kept(c, tokens[:accepted+1])
		out++
	}
}

func TestReferenceOutputsAreReproduced(t *testing.T) {
	g := openTarget(t, "bf16", "q4")
	names := []string{"hello", "one_token", "vt", "chat", "tool", "unicode", "raw", "needle_short", "needle_long"}
	all := map[string]map[string]answer{"bf16": answers(t, "bf16"), "q4": answers(t, "q4")}
	tensors := map[string]*weights.Tensors{}
	for form := range all {
		var err error
		if tensors[form], err = weights.OpenTensors(filepath.Join("testdata", "oracle"),
			"draft-"+form+".safetensors"); err != nil {
			t.Fatal(err)
		}
		defer tensors[form].Close()
	}
	for _, name := range names {
		from := g.prefill(all["bf16"][name].IDs)
		for form, of := range all {
			want := of[name]
			t.Run(form+"/"+name, func(t *testing.T) {
				if from.anchor != want.Steps[0].Anchor || !slices.Equal(from.ids, want.IDs) {
					t.Fatalf("the first token is %d, wanted %d", from.anchor, want.Steps[0].Anchor)
				}
				g.first(t, g.proposer(form, 7), from, want, name, tensors[form])
				for _, block := range []struct {
					most int
					want []step
				}{{7, want.Steps}, {3, want.StepsOfFour}} {
					if len(block.want) == 0 {
						t.Fatalf("there are no blocks of %d", block.most+1)
					}
					g.decode(t, g.proposer(form, block.most), from, block.want)
				}
			})
		}
		from.state.Release()
	}
}

// first compares the values of the first block.
func (g *target) first(t *testing.T, p *Proposer, from prefilled, want answer, name string, tensors *weights.Tensors) {
	s, c := g.begin(p, from)
	defer s.Close()
	defer c.End()
	h := p.config.Hidden
	rowsOf := func(what string) []float32 {
		tensor, ok := tensors.Tensor(name + "." + what)
		if !ok {
			t.Fatalf("there are no reference values %s.%s", name, what)
		}
		return weights.Floats(nil, tensor.DType, tensor.Data)
	}
	context := rowsOf("context_last")
	width := len(p.config.Taps) * h
	last := make([]float32, len(context))
	if err := p.net().Context(t.Context(), last, from.taps[len(from.taps)-len(context)/h*width:]); err != nil {
		t.Fatal(err)
	}
	near(t, "context rows", last, context)
	got := propose(t, p, c, from.anchor, want.Steps[0].Drafted)
	n := p.net()
	near(t, "final rows", n.work.selected.Floats()[:7*h], rowsOf("rows"))
	before := from.anchor
	for r, ids := range want.First.Candidates {
		mine, logits := n.candidates(r, nil, nil)
		if len(mine) != len(ids) {
			t.Fatalf("row %d: %d candidates, wanted %d", r, len(mine), len(ids))
		}
		scores := slices.Clone(logits)
		n.score(r, before, mine, scores)
		byID := map[int32]int{}
		for i, id := range mine {
			byID[id] = i
		}
		for i, id := range ids {
			at, there := byID[id]
			if !there {
				t.Errorf("row %d: no candidate %d", r, id)
				continue
			}
			near(t, fmt.Sprintf("row %d, candidate %d: logit and score", r, id), []float32{logits[at], scores[at]},
				[]float32{want.First.Logits[r][i], want.First.Scores[r][i]})
		}
		before = got[r]
	}
}

// near compares values with the tolerance of the reference outputs.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d values, wanted %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-3) {
			t.Fatalf("%s: value %d is %g, wanted %g", what, i, got[i], want[i])
		}
	}
}

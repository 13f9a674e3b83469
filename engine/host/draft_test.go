package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/engine/model"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/wire"
)

// draftedHost is Pocket with some draft, answering.
type draftedHost struct {
	t testing.TB
	*Host
}

func startDrafted(t *testing.T, draft string, tokens int, cache int64) *draftedHost {
	t.Helper()
	return startDraftedIn(t, draft, tokens, cache, 2048)
}

func startDraftedIn(t testing.TB, draft string, tokens int, cache int64, window int) *draftedHost {
	t.Helper()
	h, err := Open(Settings{ModelDir: pocketDir, ModelID: "pocket", Device: "cpu", Operands: "auto",
		WindowTokens: window, Parallel: 3, Queue: 1000,
		CacheMemoryBytes: cache, Draft: draft, DraftTokens: tokens, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	d := &draftedHost{t, h}
	t.Cleanup(d.run())
	return d
}

// run answers until stop is called, which closes the host.
func (h *draftedHost) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- h.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ran; err != nil {
			h.t.Error(err)
		}
		h.Close(0)
	}
}

// answered is what a client sees of a reply.
type answered struct {
	IDs    []int32
	Text   string
	Reason serve.FinishReason
	Tops   [][]sample.Logprob
	usage  serve.Usage
	times  serve.Times
}

// ask answers a request. After leaveAt tokens (0: never) its client leaves.
func (h *draftedHost) ask(r serve.Request, leaveAt int) (a answered) {
	r.Text = h.text.Tokenizer.NewStream()
	reply, err := h.Engine().Submit(context.Background(), r)
	if err != nil {
		h.t.Error(err)
		return a
	}
	for range reply.Ready() {
		for _, e := range reply.Take() {
			a.Text += e.Text
			if e.Token != nil {
				a.IDs, a.Tops = append(a.IDs, e.Token.ID), append(a.Tops, e.Token.Top)
			}
			if e.End != nil {
				a.Reason, a.usage, a.times = e.End.Reason, e.End.Usage, e.End.Times
				if e.End.Err != nil && leaveAt == 0 {
					h.t.Error(e.End.Err)
				}
				return a
			}
		}
		if leaveAt > 0 && len(a.IDs) >= leaveAt {
			reply.Cancel(fmt.Errorf("the client left"))
		}
	}
	panic("the reply does not end")
}

// textsOf are token ids of texts of every kind, beginning with the oracle's prompts.
func textsOf(t *testing.T) (texts [][]int32) {
	t.Helper()
	raw, err := os.ReadFile("../model/testdata/oracle/oracle-q4.json")
	if err != nil {
		t.Fatal(err)
	}
	var oracle map[string]struct {
		IDs []int32 `json:"ids"`
	}
	if err := json.Unmarshal(raw, &oracle); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"chat", "hello", "needle_short", "one_token", "raw", "tool", "unicode", "vt"} {
		if len(oracle[name].IDs) == 0 {
			t.Fatalf("the oracle has no prompt %s", name)
		}
		texts = append(texts, oracle[name].IDs)
	}
	return texts
}

// draftCases are greedy requests of every kind. Kinds share prompts, so that later ones go on from restore points.
func draftCases(t *testing.T, n int) (cases []serve.Request) {
	r, texts := rand.New(rand.NewPCG(5, 5)), textsOf(t)
	for i := range n {
		ids := texts[i%len(texts)]
		if i >= len(texts) && i%3 > 0 {
			at := r.IntN(len(ids))
			ids = slices.Concat(ids[:at+1], texts[r.IntN(len(texts))])
		}
		p := sample.Neutral()
		p.Temperature = 0
		q := serve.Request{ID: fmt.Sprint("case ", i), Prompt: ids[:min(len(ids), 500)], MaxTokens: 16 + r.IntN(24),
			Sampling: p, TopLogprobs: -1}
		switch i % 6 {
		case 1:
			q.Stop = []string{"e", " the", "\n"}[r.IntN(3):]
		case 2:
			q.Sampling.RepetitionPenalty, q.Sampling.PresencePenalty, q.Sampling.FrequencyPenalty = 1.3, 0.5, 0.4
		case 3:
			q.Sampling.LogitBias = map[int32]float64{299: 4, 220: -100, 384: 3}
		case 4:
			q.TopLogprobs, q.MaxTokens = 3, 1+r.IntN(5)
		case 5:
			q.Mask = func(reply []int32) sample.Mask { // every third token is even
				if len(reply)%3 != 0 {
					return nil
				}
				mask := sample.NewMask(4096)
				for id := int32(0); id < 4000; id += 2 {
					mask.Allow(id)
				}
				return mask
			}
		}
		cases = append(cases, q)
	}
	return cases
}

// drafting is a kind of draft and how many tokens it proposes.
type drafting struct {
	kind   string
	tokens int
}

func TestGreedyRepliesAreTheSameWithAndWithoutADraft(t *testing.T) {
	n, drafts := 12, []drafting{{"mtp", 3}, {"dflash2", 7}}
	if os.Getenv("SLIPWAY_SOAK") != "" {
		n = 240
		drafts = []drafting{{"mtp", 1}, {"mtp", 2}, {"mtp", 3}, {"mtp", 4}, {"dflash2", 1}, {"dflash2", 3},
			{"dflash2", 5}, {"dflash2", 7}}
	}
	cases := draftCases(t, n)
	plain := startDrafted(t, "none", 0, 0)
	var want, wantNext []answered
	var next []serve.Request // a turn later
	for _, q := range cases {
		a := plain.ask(q, 0)
		want = append(want, a)
		q.ID, q.Prompt = "after "+q.ID, slices.Concat(q.Prompt, a.IDs, []int32{384, 17, 13})
		next = append(next, q)
		wantNext = append(wantNext, plain.ask(q, 0))
	}
	for _, d := range drafts {
		t.Run(fmt.Sprint(d.kind, ", ", d.tokens, " tokens"), func(t *testing.T) {
			h := startDrafted(t, d.kind, d.tokens, 64<<20)
			var drafted, accepted, restored int
			var mu sync.Mutex
			same := func(i int, q serve.Request, want answered) {
				got := h.ask(q, 0)
				mu.Lock()
				drafted, accepted, restored = drafted+got.usage.Drafts.Drafted(), accepted+got.usage.Drafts.Accepted(),
					restored+got.usage.CachedTokens
				mu.Unlock()
				got.usage, want.usage, got.times, want.times = serve.Usage{}, serve.Usage{}, serve.Times{},
					serve.Times{}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: with a draft %v %q (%s), without %v %q (%s)", q.ID, got.IDs, got.Text, got.Reason,
						want.IDs, want.Text, want.Reason)
				}
			}
			for i := 0; i < len(cases); i += 3 { // in batches
				var batch sync.WaitGroup
				for k := i; k < min(i+3, len(cases)); k++ {
					batch.Go(func() {
						if k%4 == 1 {
							if a := h.ask(cases[k], 5); !strings.HasPrefix(want[k].Text, a.Text) {
								t.Errorf("%s: %q is cut off from %q", cases[k].ID, a.Text, want[k].Text)
							}
						}
						same(k, cases[k], want[k])
						same(k, next[k], wantNext[k])
					})
				}
				batch.Wait()
			}
			if drafted == 0 || accepted == 0 || restored == 0 || accepted == drafted {
				t.Errorf("%d tokens were drafted, %d accepted, %d restored: some of all is what this test is for",
					drafted, accepted, restored)
			}
			t.Logf("%d of %d drafted tokens were accepted; %d tokens were restored", accepted, drafted, restored)
		})
	}
}

func TestAcceptedAndRejectedDraftsAreReported(t *testing.T) {
	k := startKept(t, func(s *Settings) { s.Draft, s.DraftTokens = "mtp", 2 })
	ask := `{"model": "pocket", "messages": [{"role": "user", "content": "Tell me about boats."}], "max_tokens": 60, "temperature": 0, "logit_bias": {"4088": -100}}`
	post, err := http.Post(k.URL+"/v1/chat/completions", "application/json", strings.NewReader(ask))
	if err != nil {
		t.Fatal(err)
	}
	defer post.Body.Close()
	var reply struct{ Usage wire.Usage }
	if err := json.NewDecoder(post.Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	accepted, rejected := reply.Usage.CompletionDetails.AcceptedPredictionTokens,
		reply.Usage.CompletionDetails.RejectedPredictionTokens
	if accepted < 1 || rejected < 1 || reply.Usage.CompletionTokens != 60 || accepted >= 60 {
		t.Errorf("of %d tokens %d were drafted, and %d more were rejected", reply.Usage.CompletionTokens, accepted,
			rejected)
	}
	records, _ := k.engine.Ledger().Records(0)
	d := records[len(records)-1].Usage.Drafts
	if d.Accepted() != accepted || d.Drafted() != accepted+rejected || d.At[2].Drafted != 0 ||
		d.Passes != d.At[0].Drafted || d.Propose <= 0 || d.Verify <= 0 {
		t.Errorf("the ledger has %+v, the reply %d accepted and %d rejected", d, accepted, rejected)
	}
	scrape, err := http.Get(k.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer scrape.Body.Close()
	text, _ := io.ReadAll(scrape.Body)
	for _, line := range []string{fmt.Sprintf("slipway_accepted_tokens_total{position=\"1\"} %d\n", d.At[0].Accepted),
		fmt.Sprintf("slipway_verified_passes_total %d\n", d.Passes)} {
		if !strings.Contains(string(text), line) {
			t.Errorf("/metrics does not say %q", line)
		}
	}
}

// The head is added to the loaded model: its own weights and keys and values, and some rows of work.
func TestMemoryOfADraftIsItsHeads(t *testing.T) {
	held := func(draft string) model.Memory {
		return startDrafted(t, draft, 0, 0).network.MemoryBytes()
	}
	without, empty, with := held("none"), held(""), held("mtp")
	if without != empty {
		t.Errorf("without a draft: %+v and %+v", without, empty)
	}
	head := with.Weights - without.Weights + with.KVPages - without.KVPages
	total := func(m model.Memory) int64 { return m.Weights + m.KVPages + m.States + m.Work }
	if more := total(with) - total(without); head <= 0 || float64(more) > float64(head)+0.1*float64(total(without)) {
		t.Errorf("a draft takes %d bytes more, its head and their keys and values are %d of %d", more, head,
			total(without))
	}
}

// draftWith writes Pocket's draft into a folder of its own, changed.
func draftWith(t *testing.T, change func(config map[string]any), files ...string) string {
	t.Helper()
	dir := t.TempDir()
	raw, err := os.ReadFile("../draft/dflash/testdata/bf16/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	if raw, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, from := range append(files, "../draft/dflash/testdata/bf16/model.safetensors") {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(from)), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDraftsThatDoNotFitAreRefusedAtLoad(t *testing.T) {
	inner := func(field string, value any) func(map[string]any) {
		return func(c map[string]any) { c["dflash_config"].(map[string]any)[field] = value }
	}
	outer := func(field string, value any) func(map[string]any) {
		return func(c map[string]any) { c[field] = value }
	}
	other := filepath.Join(t.TempDir(), "tokenizer.json")
	own, err := os.ReadFile(filepath.Join(pocketDir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(own), `"<|fim_pad|>"`, `"<|fim_other|>"`, -1)
	if changed == string(own) {
		t.Fatal("the tokenizer has no <|fim_pad|>")
	}
	if err := os.WriteFile(other, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, says string
		bits            int
	}{
		{name: "another model", dir: draftWith(t, outer("num_target_layers", 64)), says: "another model, of 64 layers"},
		{name: "another tokenizer by size", dir: draftWith(t, outer("vocab_size", 248320)), says: "another tokenizer"},
		{name: "another tokenizer by its tokens", dir: draftWith(t, nil, other),
			says: `its token 4095 is "<|fim_other|>"`},
		{name: "missing taps", dir: draftWith(t, inner("target_layer_ids", []int{1, 3, 9})),
			says: "reads layers [1 3 9]"},
		{name: "fewer taps than fc reads", dir: draftWith(t, inner("target_layer_ids", []int{1, 3})),
			says: "fc.weight"},
		{name: "wrong shapes", dir: draftWith(t, outer("intermediate_size", 641)), says: "gate_proj", bits: 16},
		{name: "rows that groups of 64 do not divide", dir: draftWith(t, outer("num_attention_heads", 6)),
			says: "q_proj"},
		{name: "another kind", dir: draftWith(t, outer("architectures", []string{"Eagle"})), says: "[Eagle]"},
		{name: "no folder", dir: filepath.Join(t.TempDir(), "none"), says: "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pocketOn(nil)
			s.Device, s.Draft, s.DraftDir, s.DraftBits = "cpu", "dflash2", c.dir, c.bits
			h, err := Open(s)
			if err == nil {
				h.Close(0)
				t.Fatal("it is served")
			}
			var refused *SettingError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "leave --draft out") {
				t.Errorf("%v, wanted a sentence with %q", err, c.says)
			}
		})
	}
	s := pocketOn(nil)
	s.Device, s.Draft, s.DraftDir = "cpu", "dflash2", draftWith(t, nil, filepath.Join(pocketDir, "tokenizer.json"))
	h, err := Open(s)
	if err != nil {
		t.Fatalf("the draft in a folder of its own: %v", err)
	}
	h.Close(0)
}

// A server that gave its memory back drafts again after it has loaded the model again.
func TestDraftIsLoadedAgainAfterAnIdleUnload(t *testing.T) {
	h, err := Open(Settings{ModelDir: pocketDir, ModelID: "pocket", Device: "cpu", Operands: "auto", WindowTokens: 1024,
		Parallel: 1, Queue: 2, CacheMemoryBytes: 16 << 20, Draft: "dflash2", Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	h.network.Sleep()
	if h.draft != nil || h.draftFiles != nil {
		t.Error("the draft stays while the model is unloaded")
	}
	if err := h.network.Wake(); err != nil {
		t.Fatal(err)
	}
	d := &draftedHost{t, h}
	defer d.run()()
	p := sample.Neutral()
	p.Temperature = 0
	for range 2 { // the second one goes on from a point of the first
		a := d.ask(serve.Request{Prompt: textsOf(t)[0], MaxTokens: 30, Sampling: p, TopLogprobs: -1, DraftTokens: 3}, 0)
		if a.usage.Drafts.Accepted() < 15 {
			t.Errorf("%d tokens were taken of %d", a.usage.Drafts.Accepted(), a.usage.Drafts.Drafted())
		}
	}
}

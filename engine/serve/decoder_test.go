package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/engine/memory"
	"slipway/engine/memory/keep"
	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/serve/servetest"
)

const (
	draftRows  = 4 // rows that the scripted decoder verifies: the last token and three drafted ones
	testVocab  = 64
	testEnd    = 63
	testWindow = 2000
)

// scripted is a decoder with a draft that is right as often as the script says: 0 to 4 tokens are accepted a step.
type scripted struct {
	e       *Engine
	net     *servetest.Network
	accepts func() int
}

func (d *scripted) decode(ctx context.Context, jobs []*job) ([]step, error) {
	steps, accepts := make([]step, len(jobs)), make([]int, len(jobs))
	var segments []pass.Segment
	var of []int
	for i, j := range jobs {
		if accepts[i] = d.accepts(); accepts[i] == 0 {
			continue
		}
		history := slices.Concat(j.Prompt, j.out)
		tokens := []int32{history[len(history)-1]}
		for k := range draftRows - 1 {
			next := d.net.Next(history)
			if k >= accepts[i]-1 {
				next = (next + 7) % 26 // rejected
			}
			history, tokens = append(history, next), append(tokens, next)
		}
		segments = append(segments, pass.Segment{Seq: j.seq, Tokens: tokens, Logits: pass.LogitsAll})
		of = append(of, i)
	}
	if len(segments) == 0 {
		return steps, nil
	}
	rows, err := d.e.forward(ctx, segments)
	if err != nil {
		return nil, err
	}
	for s, i := range of {
		j, reply := jobs[i], slices.Clone(jobs[i].out)
		for row := range accepts[i] {
			token, err := d.e.choose(j, reply, rows[s][row], s, row)
			if err != nil {
				steps[i].err = err
				break
			}
			steps[i].tokens, reply = append(steps[i].tokens, token), append(reply, token.ID)
			if row+1 < draftRows && token.ID != segments[s].Tokens[row+1] {
				break // as by a penalty
			}
		}
		if err := j.rewind(draftRows - max(1, len(steps[i].tokens))); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// digest is a next token that depends on the whole history, so that a state with a token too many shows.
func digest(history []int32) int32 {
	h := uint64(1)
	for _, id := range history {
		h = (h ^ uint64(uint32(id))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	if h%97 == 0 {
		return testEnd
	}
	return int32(h % 26)
}

type alphabet struct{}

func (alphabet) Push(id int32) string { return string(rune('a' + id%26)) }
func (alphabet) Flush() string        { return "" }

// testEngine is an engine with a cache, whose decoder accepts what accepts says; nil: the plain decoder.
func testEngine(t *testing.T, accepts func() int) *Engine {
	t.Helper()
	net := &servetest.Network{Vocab: testVocab, Window: testWindow, Chunk: 32, Next: digest, Tape: 64}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	keeper := keep.New(keep.Options{
		Key: memory.Key{Model: "double"}, PointBytes: 1, TapeTokenBytes: 1, PageTokens: 16, WindowTokens: testWindow,
		ChunkTokens: 32,
		Memory:      memory.Budget{OwnBytes: 1000, Pages: 1000, TotalBytes: math.MaxInt64, PageBytes: 1},
		ReplyBytes:  1 << 16, Decode: func([]int32) string { return "" }, Log: log,
	})
	e, err := New(net, Options{Parallel: 3, Queue: 8, VocabTokens: testVocab, EndTokens: []int32{testEnd},
		Keeper: keeper, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if accepts != nil {
		e.decoder = &scripted{e, net, accepts}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if e.opt.Keeper == nil {
			t.Error("the cache was dropped after a panic")
		}
		if open := net.Open(); open != 0 {
			t.Errorf("%d sequences are left open", open)
		}
	})
	return e
}

func accepting(n int) func() int { return func() int { return n } }

func randomly(seed uint64) func() int {
	r := rand.New(rand.NewPCG(seed, 3))
	return func() int { return r.IntN(5) }
}

func somePrompt(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 4))
	prompt := make([]int32, n)
	for i := range prompt {
		prompt[i] = int32(r.IntN(26))
	}
	return prompt
}

func greedy(prompt []int32, most int) Request {
	p := sample.Neutral()
	p.Temperature = 0
	return Request{Prompt: prompt, MaxTokens: most, Sampling: p, TopLogprobs: -1, Text: alphabet{}}
}

// answer is what a client gets.
type answer struct {
	text string
	ids  []int32
	end  End
}

// equal leaves out times.
func (a answer) equal(b answer) bool {
	return a.text == b.text && slices.Equal(a.ids, b.ids) && a.end.Reason == b.end.Reason &&
		a.end.Usage == b.end.Usage &&
		a.end.LimitTokens == b.end.LimitTokens && a.end.Windowed == b.end.Windowed
}

func (a answer) String() string {
	return fmt.Sprintf("%q %v %s %+v", a.text, a.ids, a.end.Reason, a.end.Usage)
}

// readUntil reads a reply to its end, and calls each with the number of tokens so far.
func readUntil(t *testing.T, reply *Reply, each func(tokens int)) (a answer) {
	t.Helper()
	var text strings.Builder
	for {
		select {
		case <-reply.Ready():
		case <-time.After(10 * time.Second):
			t.Fatal("the reply does not end")
		}
		for _, event := range reply.Take() {
			text.WriteString(event.Text)
			if event.Token != nil {
				a.ids = append(a.ids, event.Token.ID)
				each(len(a.ids))
			}
			if event.End != nil {
				a.text, a.end = text.String(), *event.End
				return a
			}
		}
	}
}

func answerTo(t *testing.T, e *Engine, r Request) answer {
	t.Helper()
	reply, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return readUntil(t, reply, func(int) {})
}

// scripts are the ways to accept that the tests below go through.
func scripts() map[string]func() int {
	all := map[string]func() int{"at random": randomly(1), "at random, otherwise": randomly(2)}
	for n := 1; n <= draftRows; n++ {
		all[fmt.Sprintf("%d a step", n)] = accepting(n)
	}
	return all
}

// A conversation of several turns, some of which end by a stop text, by MaxTokens or by an end token: replies, usage
// and what is restored do not depend on how many tokens a step accepts.
func TestRepliesDoNotDependOnHowManyTokensAStepAccepts(t *testing.T) {
	plain := testEngine(t, nil)
	type turn struct {
		request Request
		want    answer
	}
	var turns []turn
	reasons := map[FinishReason]int{}
	for seed := range uint64(4) {
		prompt := somePrompt(seed, 40+int(seed))
		for i := range 12 {
			r := greedy(prompt, 10+7*i%23)
			whole := answerTo(t, testEngine(t, nil), r) // what follows, from nothing
			if n := len(whole.text); i%3 == 1 && n > 8 {
				r.Stop = []string{whole.text[n/2 : n/2+2]}
			}
			if i%4 == 3 {
				r.Sampling.PresencePenalty, r.Sampling.FrequencyPenalty = 0.5, 0.3
			}
			want := answerTo(t, plain, r)
			turns = append(turns, turn{r, want})
			reasons[want.end.Reason]++
			if len(r.Stop) > 0 && want.end.Reason == FinishStop {
				reasons["stop text"]++
			}
			prompt = slices.Concat(prompt, want.ids, somePrompt(100+seed+uint64(i), 5))
		}
	}
	if reasons[FinishLength] < 5 || reasons["stop text"] < 5 || reasons[FinishStop] <= reasons["stop text"] {
		t.Fatalf("the requests end by %v", reasons)
	}
	for name, accepts := range scripts() {
		t.Run(name, func(t *testing.T) {
			e := testEngine(t, accepts)
			for i, turn := range turns {
				if got := answerTo(t, e, turn.request); !got.equal(turn.want) {
					t.Fatalf("turn %d: %v\nwanted %v", i, got, turn.want)
				}
			}
		})
	}
}

func TestRequestsSideBySideKeepTheirReplies(t *testing.T) {
	var requests []Request
	var want []answer
	for i := range 9 {
		r := greedy(somePrompt(uint64(i%4), 20+i), 5+9*i)
		requests, want = append(requests, r), append(want, answerTo(t, testEngine(t, nil), r))
	}
	e := testEngine(t, randomly(5))
	var replies []*Reply
	for _, r := range requests {
		reply, err := e.Submit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply)
	}
	for i, reply := range replies {
		got := readUntil(t, reply, func(int) {})
		got.end.Usage = want[i].end.Usage // they restore each other's prefixes
		if !got.equal(want[i]) {
			t.Errorf("request %d: %v\nwanted %v", i, got, want[i])
		}
	}
}

// A client that leaves in the middle of a reply: what was processed is kept without a rejected token, and going on from
// any part of it gives the answers of a fresh engine.
func TestCancelledDraftedReplyKeepsOnlyWhatWasAccepted(t *testing.T) {
	for name, accepts := range scripts() {
		t.Run(name, func(t *testing.T) {
			for leave := 1; leave <= 70; leave += 23 {
				e := testEngine(t, accepts)
				prompt := somePrompt(uint64(leave), 50)
				r := greedy(prompt, 1500)
				r.Sampling.LogitBias = map[int32]float64{testEnd: -100}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				reply, err := e.Submit(ctx, r)
				if err != nil {
					t.Fatal(err)
				}
				part := readUntil(t, reply, func(tokens int) {
					if tokens == leave {
						cancel()
					}
				})
				if part.end.Reason != FinishCancelled && part.end.Reason != FinishLength {
					t.Fatalf("ended by %s", part.end.Reason)
				}
				for _, sent := range []int{0, leave / 2, leave, len(part.ids)} {
					next := greedy(slices.Concat(prompt, part.ids[:sent], []int32{3, 1}), 12)
					got, want := answerTo(t, e, next), answerTo(t, testEngine(t, nil), next)
					if got.text != want.text || got.end.Usage.PromptTokens() != want.end.Usage.PromptTokens() {
						t.Fatalf("left after %d, going on from %d: %v\nwanted %v", leave, sent, got, want)
					}
				}
			}
		})
	}
}

// A decoder that forgets to take rejected tokens back breaks the cache's contract: no point is saved from then on.
func TestRejectedTokensThatWereNotRewoundAreNeverKept(t *testing.T) {
	e := testEngine(t, nil)
	prompt := somePrompt(3, 40)
	forgetful := &servetest.Network{Vocab: testVocab, Window: testWindow, Chunk: 32, Next: digest, Tape: 64}
	seq, err := forgetful.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	defer seq.Close()
	visit := e.opt.Keeper.Admit(prompt, keep.Marks{}, seq)
	forward := func(tokens ...int32) {
		t.Helper()
		if _, err := forgetful.Forward(context.Background(), []pass.Segment{{Seq: seq, Tokens: tokens}}); err != nil {
			t.Fatal(err)
		}
	}
	forward(prompt...)
	visit.Processed(prompt)
	before := e.opt.Keeper.Counters().Saved
	forward(1, 2, 3)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("three processed tokens were reported as two")
			}
		}()
		visit.Processed([]int32{1, 2})
	}()
	visit.End(keep.EndWhole, []int32{1, 2, 3})
	if saved := e.opt.Keeper.Counters().Saved; saved != before {
		t.Errorf("%d points were saved of it", saved-before)
	}
}

func TestDecoderAllocatesOnlyToChooseTheToken(t *testing.T) {
	net := &servetest.Network{Vocab: testVocab, Window: testWindow, Chunk: 32, Next: digest}
	row := make([]float32, testVocab)
	e, err := New(&fixedRows{net, [][][]float32{{row}}}, Options{Parallel: 1, VocabTokens: testVocab, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(context.Background(), greedy([]int32{1}, 0), 1000, time.Now())
	j.out = []int32{2}
	jobs := []*job{j}
	sampling := testing.AllocsPerRun(50, func() {
		if _, err := e.choose(j, j.out, row, 0, 0); err != nil {
			t.Fatal(err)
		}
	})
	decoding := testing.AllocsPerRun(50, func() {
		if steps, err := e.decode(context.Background(), jobs); err != nil || len(steps[0].tokens) != 1 {
			t.Fatal(steps, err)
		}
	})
	if decoding > sampling {
		t.Errorf("%v allocations a step, %v of them to choose the token", decoding, sampling)
	}
}

// fixedRows gives the same rows for every pass, and allocates nothing.
type fixedRows struct {
	*servetest.Network
	rows [][][]float32
}

func (f *fixedRows) Forward(context.Context, []pass.Segment) ([][][]float32, error) {
	return f.rows, nil
}
func (f *fixedRows) Best(int, int) sample.Top { return sample.Top{} }

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/engine/api"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// pocketDir is the embedded model.
const pocketDir = "../../manifests/pocket"

// kept is a server in this process over Pocket, which records every id that went through it, beside the keeper.
type kept struct {
	t *testing.T
	*httptest.Server
	host   *Host
	engine *serve.Engine
	cut    func()
	ran    chan error
	log    said

	// script, where set, is what the model is made to reply to request i, ids and all.
	script func(i int) []int32

	// that each token takes at least: a client that leaves must be noticed before the tape has run over
	pace time.Duration

	mu      sync.Mutex
	prompts [][]int32
	seen    [][]int32 // prompt and reply of each request
}

// said is a log that can be read while it is written.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// await waits until a line has been said n times.
func (s *said) await(t *testing.T, line string, n int) {
	t.Helper()
	for range 3000 {
		s.mu.Lock()
		found := strings.Count(s.text.String(), line)
		s.mu.Unlock()
		if found >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q is not said", line)
}

// watched passes requests on and records their ids.
type watched struct {
	*serve.Engine
	k *kept
}

type recording struct {
	serve.Decoder
	push func(int32)
}

func (r recording) Push(id int32) string {
	r.push(id)
	return r.Decoder.Push(id)
}

func (w watched) Submit(ctx context.Context, req serve.Request) (*serve.Reply, error) {
	w.k.mu.Lock()
	at := len(w.k.seen)
	w.k.prompts = append(w.k.prompts, req.Prompt)
	w.k.seen = append(w.k.seen, slices.Clone(req.Prompt))
	w.k.mu.Unlock()
	if w.k.script != nil {
		script := w.k.script(at)
		req.Mask = func(reply []int32) sample.Mask {
			mask := sample.NewMask(w.k.host.text.Tokenizer.VocabSize())
			mask.Allow(script[len(reply)])
			return mask
		}
	}
	if w.k.pace > 0 {
		req.Mask = func([]int32) sample.Mask {
			time.Sleep(w.k.pace)
			return nil
		}
	}
	req.Text = recording{req.Text, func(id int32) {
		w.k.mu.Lock()
		defer w.k.mu.Unlock()
		w.k.seen[at] = append(w.k.seen[at], id)
	}}
	return w.Engine.Submit(ctx, req)
}

func startKept(t *testing.T, change func(*Settings)) *kept {
	t.Helper()
	return startKeptAfter(t, change, nil)
}

// startKeptAfter lets settings depend on the loaded model.
func startKeptAfter(t *testing.T, change func(*Settings), after func(*Host, *Settings)) *kept {
	t.Helper()
	s := Settings{ModelDir: pocketDir, ModelID: "pocket", Version: "v", Device: "cpu", Operands: "auto",
		WindowTokens: 8192, Parallel: 2, Queue: 16,
		CacheMemoryBytes: 256 << 20, CacheDiskBytes: 1 << 30}
	if change != nil {
		change(&s)
	}
	k := &kept{t: t, ran: make(chan error, 1)}
	s.Log = slog.New(slog.NewTextHandler(&k.log, nil))
	h := &Host{s: s, log: s.Log}
	if err := h.load(); err != nil {
		t.Fatal(err)
	}
	if after != nil {
		after(h, &h.s)
	}
	if err := h.makeQueue(); err != nil {
		t.Fatal(err)
	}
	k.host, k.engine = h, h.Engine()
	options := h.Answers(api.Options{ModelID: "pocket", Version: "v", Started: time.Now(), BodyBytes: 32 << 20,
		KeepAlive: time.Hour, Now: time.Now, Log: s.Log})
	options.Engine = watched{k.engine, k}
	options.Defaults = sample.Neutral()
	options.Defaults.Temperature = 0
	k.Server = httptest.NewServer(api.New(options).Handler())
	ctx, cut := context.WithCancel(context.Background())
	k.cut = cut
	go func() { k.ran <- h.Run(ctx) }()
	t.Cleanup(k.stop)
	return k
}

// stop is a clean end.
func (k *kept) stop() {
	if k.cut == nil {
		return
	}
	k.Server.CloseClientConnections()
	k.cut()
	<-k.ran
	k.Server.Close()
	k.host.Close(time.Minute)
	k.cut = nil
}

type message = map[string]any

func user(text string) message   { return message{"role": "user", "content": text} }
func system(text string) message { return message{"role": "system", "content": text} }

// ask is a chat request's outcome.
type asked struct {
	content, reasoning string
	calls              []any
	prompt, computed   int
	fresh              int // tokens of the prompt that were never processed before
}

// messages builds the assistant's turn as a client would send it back.
func (a asked) message() message {
	m := message{"role": "assistant", "content": strings.TrimSpace(a.content)}
	if a.reasoning != "" {
		m["reasoning_content"] = a.reasoning
	}
	if len(a.calls) > 0 {
		m["tool_calls"] = a.calls
	}
	return m
}

func body(messages []message, more message) []byte {
	all := message{"model": "pocket", "messages": messages, "max_tokens": 24, "chat_template_kwargs": message{
		"enable_thinking": false}}
	for name, value := range more {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return raw
}

func (k *kept) ask(messages []message, more message) asked {
	k.t.Helper()
	k.mu.Lock()
	before := len(k.prompts)
	k.mu.Unlock()
	response, err := http.Post(k.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body(messages, more)))
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		k.t.Fatalf("%v, status %d: %s", err, response.StatusCode, raw)
	}
	var r struct {
		Choices []struct {
			Message struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
				Calls     []any  `json:"tool_calls"`
			}
		}
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Slipway struct {
				Computed int `json:"computed_tokens"`
			}
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		k.t.Fatal(err)
	}
	m := r.Choices[0].Message
	if r.Usage.Details.Cached+r.Usage.Slipway.Computed != r.Usage.Prompt {
		k.t.Fatalf("cached %d + computed %d is not %d", r.Usage.Details.Cached, r.Usage.Slipway.Computed,
			r.Usage.Prompt)
	}
	return asked{m.Content, m.Reasoning, m.Calls, r.Usage.Prompt, r.Usage.Slipway.Computed, k.fresh(before)}
}

// fresh is how much of request i was never processed before it.
func (k *kept) fresh(i int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	prompt := k.prompts[i]
	known := 0
	for _, other := range k.seen[:i] {
		n := 0
		for n < min(len(other), len(prompt)) && other[n] == prompt[n] {
			n++
		}
		known = max(known, n)
	}
	return len(prompt) - known
}

func (k *kept) atMost(what string, a asked, bound int) {
	k.t.Helper()
	if a.computed > bound {
		k.t.Errorf("%s: %d of %d tokens were computed, at most %d may be", what, a.computed, a.prompt, bound)
	}
}

// document is n tokens or a little more of text that does not repeat.
func (k *kept) document(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	words := strings.Fields("river stone lamp garden winter letter engine paper harbour window silver market bridge " +
		"orange teacher valley")
	var b strings.Builder
	for k.tokens(b.String()) < n {
		for range 20 {
			fmt.Fprintf(&b, "%s %d ", words[r.IntN(len(words))], r.IntN(100))
		}
		b.WriteString("end.\n")
	}
	return b.String()
}

func (k *kept) tokens(s string) int {
	return len(k.host.text.Tokenizer.Encode(s, text.EncodeOptions{}))
}

// slack is what a follow-up may cost beyond what is new.
const slack = 16

// noEnd keeps the model from ending a reply.
func (k *kept) noEnd() message {
	bias := message{}
	for _, id := range k.host.network.Config().EOS {
		bias[fmt.Sprint(id)] = -100
	}
	return bias
}

// idle waits until nothing runs.
func (k *kept) idle() {
	k.t.Helper()
	for range 3000 {
		if s := k.engine.Status(); s.Active == 0 && s.Queued == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	k.t.Fatal("the server does not come to rest")
}

// letterByLetter cuts text otherwise than the tokenizer would: models do.
func (k *kept) letterByLetter(s string) []int32 {
	var ids []int32
	for _, r := range s {
		ids = append(ids, k.host.text.Tokenizer.Encode(string(r), text.EncodeOptions{})...)
	}
	return ids
}

func (k *kept) special(s string) []int32 {
	return k.host.text.Tokenizer.Encode(s, text.EncodeOptions{SpecialTokens: true})
}

// header is how many tokens open a reply, the empty thinking included.
func (k *kept) header() int { return len(k.special("<|im_start|>assistant\n<think>\n\n</think>\n\n")) }

package main

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
	"slipway/engine/memory"
	"slipway/engine/memory/keep"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
)

// kept is a server in this process over Pocket, which records every id that went through it, beside the keeper.
type kept struct {
	t *testing.T
	*httptest.Server
	loaded *loaded
	engine *serve.Engine
	cut    func()
	ran    chan error
	log    said

	// script, where set, is what the model is made to reply to request i, ids and all.
	script func(i int) []int32

	pace time.Duration // that each token takes at least: a client that leaves must be noticed before the tape has run over

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
			mask := sample.NewMask(w.k.loaded.text.Tokenizer.VocabSize())
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

func startKept(t *testing.T, change func(*settings)) *kept {
	t.Helper()
	return startKeptAfter(t, change, nil)
}

// startKeptAfter lets settings depend on the loaded model.
func startKeptAfter(t *testing.T, change func(*settings), after func(*loaded, *settings)) *kept {
	t.Helper()
	s := settings{modelDir: pocketDir, modelID: "pocket", device: "cpu", window: 8192, windowSet: true, parallel: 2, queue: 16, bodyBytes: bodyBytes, cacheMemory: 256 << 20, cacheDiskBytes: 1 << 30}
	if change != nil {
		change(&s)
	}
	k := &kept{t: t, ran: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(&k.log, nil))
	l, err := load(s, log)
	if err != nil {
		t.Fatal(err)
	}
	if after != nil {
		after(l, &s)
	}
	k.loaded = l
	options := api.Options{ModelID: "pocket", Version: "v", Started: time.Now(), BodyBytes: bodyBytes, KeepAlive: time.Hour, Now: time.Now, Log: log}
	if k.engine, err = l.engine(s, &options, log); err != nil {
		t.Fatal(err)
	}
	options.Engine = watched{k.engine, k}
	options.Defaults = sample.Neutral()
	options.Defaults.Temperature = 0
	k.Server = httptest.NewServer(api.New(options).Handler())
	ctx, cut := context.WithCancel(context.Background())
	k.cut = cut
	go func() { k.ran <- k.engine.Run(ctx) }()
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
	k.loaded.closeCache(time.Minute)
	k.loaded.close()
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
	all := message{"model": "pocket", "messages": messages, "max_tokens": 24, "chat_template_kwargs": message{"enable_thinking": false}}
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
		k.t.Fatalf("cached %d + computed %d is not %d", r.Usage.Details.Cached, r.Usage.Slipway.Computed, r.Usage.Prompt)
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
	words := strings.Fields("river stone lamp garden winter letter engine paper harbour window silver market bridge orange teacher valley")
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
	return len(k.loaded.text.Tokenizer.Encode(s, text.EncodeOptions{}))
}

// slack is what a follow-up may cost beyond what is new.
const slack = 16

func TestFollowUpsComputeWhatIsNew(t *testing.T) {
	k := startKept(t, nil)
	talk := []message{user(k.document(1, 3600) + "\nWhat is it about?")}
	first := k.ask(talk, nil)
	if first.prompt < 3600 {
		t.Fatalf("the document has %d tokens", first.prompt)
	}
	for _, question := range []string{"Which word comes first?", "And the last?", "Is there a lamp?", "Thank you. Name a number."} {
		talk = append(talk, first.message(), user(question))
		first = k.ask(talk, nil)
		k.atMost(question, first, first.fresh+slack)
		if first.fresh > 60 {
			t.Errorf("%s: %d tokens are called new", question, first.fresh)
		}
	}
	again := k.ask(talk, nil)
	k.atMost("regenerated", again, slack)
	if again.content != first.content {
		t.Errorf("regenerated %q, first %q", again.content, first.content)
	}
	edited := slices.Clone(talk)
	edited[len(edited)-1] = user("Thank you. Name a colour of the rainbow instead.")
	a := k.ask(edited, nil)
	k.atMost("last message edited", a, k.tokens("Thank you. Name a colour of the rainbow instead.")+12+slack)
}

func TestThinkingThatTheTemplateDropsIsBoundedByTheTurnBefore(t *testing.T) {
	k := startKept(t, nil)
	on := message{"chat_template_kwargs": message{"enable_thinking": true}, "max_tokens": 40}
	talk := []message{user(k.document(2, 600) + "\nWhat is it about?")}
	for _, question := range []string{"And then?", "Why?"} {
		a := k.ask(talk, on)
		talk = append(talk, a.message(), user(question))
	}
	a := k.ask(talk, on)
	k.atMost("thinking dropped", a, a.fresh+slack)
}

func TestSystemPromptIsSharedAndInterleavedConversationsKeepTheirs(t *testing.T) {
	k := startKept(t, nil)
	rules := system(k.document(3, 900))
	k.ask([]message{rules, user("Hello, I am the first.")}, nil)
	for i := range 10 {
		a := k.ask([]message{rules, user(fmt.Sprintf("Number %d greets you.", i))}, nil)
		k.atMost(fmt.Sprintf("conversation %d", i), a, a.fresh+slack)
	}
	one, two := []message{rules, user("First talk.")}, []message{user(k.document(4, 300))}
	for i := range 4 {
		a, b := k.ask(one, nil), k.ask(two, nil)
		if i > 0 {
			k.atMost("first talk", a, a.fresh+slack)
			k.atMost("second talk", b, b.fresh+slack)
		}
		one = append(one, a.message(), user(fmt.Sprintf("More of the first, %d.", i)))
		two = append(two, b.message(), user(fmt.Sprintf("More of the second, %d.", i)))
	}
}

func TestEarlyEditComputesFromTheLastPeriodBeforeIt(t *testing.T) {
	k := startKept(t, nil)
	head, tail := k.document(5, 2000), k.document(6, 1600)
	talk := func(value int) []message {
		return []message{user(fmt.Sprintf("%sThe pass key is %d.\n%sWhat is the pass key?", head, value, tail))}
	}
	k.ask(talk(58213), nil)
	a := k.ask(talk(94027), nil)
	k.atMost("early edit", a, a.fresh+512+slack)
	fresh := startKept(t, func(s *settings) { s.cacheMemory = 0 })
	if want := fresh.ask(talk(94027), nil); want.content != a.content {
		t.Errorf("after the edit %q is answered, a fresh server says %q", a.content, want.content)
	}
}

// leave streams a request and goes away after so many deltas, 0 meaning before any; it returns the content that arrived.
func (k *kept) leave(messages []message, deltas int, patience time.Duration) string {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if deltas == 0 {
		time.AfterFunc(patience, cancel)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/v1/chat/completions", bytes.NewReader(body(messages, message{"stream": true, "max_tokens": 400, "logit_bias": k.noEnd()})))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var content strings.Builder
	decoder := newEvents(response.Body)
	for got := 0; ; {
		piece, ok := decoder()
		if !ok {
			break
		}
		content.WriteString(piece)
		if piece != "" {
			if got++; got == deltas {
				break
			}
		}
	}
	cancel()
	k.idle()
	return content.String()
}

// noEnd keeps the model from ending a reply.
func (k *kept) noEnd() message {
	bias := message{}
	for _, id := range k.loaded.network.Config().EOS {
		bias[fmt.Sprint(id)] = -100
	}
	return bias
}

func newEvents(r io.Reader) func() (string, bool) {
	buffer := make([]byte, 1)
	line := ""
	return func() (string, bool) {
		for {
			n, err := r.Read(buffer)
			if n == 0 && err != nil {
				return "", false
			}
			if buffer[0] != '\n' {
				line += string(buffer[:n])
				continue
			}
			data, is := strings.CutPrefix(line, "data: ")
			line = ""
			var c struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			if is && json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) == 1 {
				return c.Choices[0].Delta.Content, true
			}
		}
	}
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

func TestCancelledReplyGoesOnWithAndWithoutItsPart(t *testing.T) {
	for _, streamed := range []int{1, 17, 90} { // 90 is past the tape
		t.Run(fmt.Sprintf("after %d pieces", streamed), func(t *testing.T) {
			k := startKept(t, nil)
			k.pace = 4 * time.Millisecond
			talk := []message{user(k.document(7, 500) + "\nTell a long story.")}
			part := k.leave(talk, streamed, 0)
			if len(part) < streamed {
				t.Fatalf("%q arrived", part)
			}
			with := k.ask(append(slices.Clone(talk), message{"role": "assistant", "content": part}, user("Go on.")), nil)
			k.atMost("with the part that arrived", with, with.fresh+slack)
			if with.fresh > 40 {
				t.Errorf("with the part that arrived %d tokens are called new", with.fresh)
			}
			without := k.ask(append(slices.Clone(talk), user("Something shorter.")), nil)
			k.atMost("without it", without, without.fresh+slack)
			again := k.ask(talk, nil)
			k.atMost("asked again", again, slack)
		})
	}
}

// leaveDuringPrefill asks and leaves once so many tokens of the prompt are dealt with. It returns how the request ended.
func (k *kept) leaveDuringPrefill(messages []message, dealtWith int) serve.Record {
	k.t.Helper()
	_, before := k.engine.Ledger().Records(0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/v1/chat/completions", bytes.NewReader(body(messages, message{"stream": true, "max_tokens": 400, "logit_bias": k.noEnd()})))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(r); err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}()
	for left := false; ; time.Sleep(time.Millisecond) {
		records, _ := k.engine.Ledger().Records(before)
		if len(records) != 1 {
			continue
		}
		last := records[0]
		switch {
		case last.Reason != "":
			<-gone
			return last
		case !left && last.Usage.PromptTokens() >= dealtWith:
			left = true
			cancel()
		}
	}
}

func TestRetryOfALongPromptComputesWhatWasNotYetPrefilledAndOneChunk(t *testing.T) {
	k := startKept(t, nil)
	talk := []message{user(k.document(8, 7000) + "\nWhat is it about?")}
	chunk, done := k.loaded.network.ChunkTokens(), 0
	for _, more := range []int{1, chunk, 3 * chunk} {
		left := k.leaveDuringPrefill(talk, done+more)
		if left.Reason != serve.FinishCancelled || left.Usage.CompletionTokens > 0 {
			t.Fatalf("the client did not leave during prefill: %+v", left)
		}
		if again := left.Length - left.Usage.CachedTokens; again > left.Length-done+chunk {
			t.Errorf("%d of %d tokens were dealt with, and a retry begins at %d", done, left.Length, left.Usage.CachedTokens)
		}
		done = left.Usage.PromptTokens()
	}
	a := k.ask(talk, nil)
	if done < 4*chunk || done >= a.prompt {
		t.Fatalf("%d of %d tokens were dealt with before", done, a.prompt)
	}
	k.atMost(fmt.Sprintf("after %d tokens", done), a, a.prompt-done+chunk)
}

// letterByLetter cuts text otherwise than the tokenizer would: models do.
func (k *kept) letterByLetter(s string) []int32 {
	var ids []int32
	for _, r := range s {
		ids = append(ids, k.loaded.text.Tokenizer.Encode(string(r), text.EncodeOptions{})...)
	}
	return ids
}

func (k *kept) special(s string) []int32 {
	return k.loaded.text.Tokenizer.Encode(s, text.EncodeOptions{SpecialTokens: true})
}

func TestToolLoopWithRewrittenArguments(t *testing.T) {
	k := startKept(t, nil)
	// The model writes its calls in tokens that the tokenizer would not choose.
	k.script = func(i int) []int32 {
		call := k.letterByLetter(fmt.Sprintf("\n<function=look>\n<parameter=word>\nlamp %d\n</parameter>\n<parameter=count>\n%d\n</parameter>\n</function>\n", i, i))
		return slices.Concat(k.special("<tool_call>"), call, k.special("</tool_call><|im_end|>"))
	}
	tool := message{"type": "function", "function": message{"name": "look", "description": "Looks a word up.", "parameters": message{"type": "object",
		"properties": message{"word": message{"type": "string"}, "count": message{"type": "integer"}}}}}
	more := message{"tools": []any{tool}, "max_tokens": 200}
	talk := []message{system(k.document(9, 200)), user("Look up words, one after another.")}
	for i := range 20 {
		a := k.ask(talk, more)
		if i > 0 {
			k.atMost(fmt.Sprintf("call %d", i), a, a.fresh+slack)
			if a.fresh > 30 { // what the tool said and the headers around it
				t.Errorf("call %d: %d tokens are called new", i, a.fresh)
			}
		}
		if len(a.calls) != 1 {
			t.Fatalf("%d calls: %q", len(a.calls), a.content)
		}
		call := a.calls[0].(map[string]any)
		function := call["function"].(map[string]any)
		var arguments map[string]any
		if err := json.Unmarshal([]byte(function["arguments"].(string)), &arguments); err != nil || len(arguments) != 2 {
			t.Fatal(err, arguments)
		}
		pretty, err := json.MarshalIndent(arguments, "", "    ") // count comes before word now
		if err != nil {
			t.Fatal(err)
		}
		function["arguments"] = string(pretty)
		talk = append(talk, message{"role": "assistant", "content": "", "tool_calls": []any{call}},
			message{"role": "tool", "tool_call_id": call["id"], "content": fmt.Sprintf("result %d", i)})
	}
}

func TestReplyCutIntoOtherTokensIsFoundFromItsText(t *testing.T) {
	k := startKept(t, nil)
	k.script = func(i int) []int32 {
		return slices.Concat(k.letterByLetter(fmt.Sprintf("The harbour lies behind bridge %d, and the river is silver.\n", i)), k.special("<|im_end|>"))
	}
	talk := []message{user(k.document(14, 300) + "\nWhere is it?")}
	for i := range 4 {
		a := k.ask(talk, message{"max_tokens": 100})
		if i > 0 {
			k.atMost(fmt.Sprintf("turn %d", i), a, a.fresh+slack)
			if a.fresh > 25 {
				t.Errorf("turn %d: %d tokens are called new", i, a.fresh)
			}
		}
		talk = append(talk, a.message(), user("And then?")) // trimmed
	}
}

func TestStopTextLeavesTheReplyContinuable(t *testing.T) {
	k := startKept(t, nil)
	talk := []message{user(k.document(10, 400) + "\nCount to nine.")}
	whole := k.ask(talk, message{"max_tokens": 30, "logit_bias": k.noEnd()})
	runes := []rune(strings.TrimSpace(whole.content))
	if len(runes) < 12 {
		t.Fatalf("Pocket answers %q, too short to cut", whole.content)
	}
	stop := string(runes[len(runes)/2 : len(runes)/2+4])
	cut := k.ask(talk, message{"max_tokens": 30, "stop": stop, "logit_bias": k.noEnd()})
	if strings.Contains(cut.content, stop) {
		t.Fatal("the stop text is in the reply")
	}
	next := k.ask(append(talk, cut.message(), user("And on?")), nil)
	k.atMost("after a stop text", next, next.fresh+slack)
}

func TestConversationSurvivesRestart(t *testing.T) {
	dir := t.TempDir() + "/cache"
	withDisk := func(s *settings) { s.cacheDisk = dir }
	k := startKept(t, withDisk)
	talk := []message{user(k.document(11, 1500) + "\nWhat is it about?")}
	a := k.ask(talk, nil)
	talk = append(talk, a.message(), user("And then?"))
	b := k.ask(talk, nil)
	talk = append(talk, b.message(), user("Why?"))
	seen, prompts := k.seen, k.prompts
	k.stop()
	k = startKept(t, withDisk)
	k.seen, k.prompts = slices.Clone(seen), slices.Clone(prompts)
	c := k.ask(talk, nil)
	k.atMost("after a restart", c, c.fresh+slack)
	if counters := k.loaded.keeper.Counters(); counters.FromDisk != 1 {
		t.Errorf("%d points came from disk", counters.FromDisk)
	}
	fresh := startKept(t, func(s *settings) { s.cacheMemory = 0 })
	if want := fresh.ask(talk, nil); want.content != c.content {
		t.Errorf("restored from disk %q is answered, a fresh server says %q", c.content, want.content)
	}
	k.stop()
	// Another revision's points are there, are not used, and are named.
	k = startKept(t, func(s *settings) { withDisk(s); s.revision = strings.Repeat("ab", 20) })
	d := k.ask(talk, nil)
	reports := k.loaded.keeper.Reports()
	if last := reports[len(reports)-1]; d.computed != d.prompt || last.Cause != memory.CauseOtherKey || len(last.Keys) != 1 || !strings.HasPrefix(last.Keys[0], "revision") {
		t.Errorf("under another revision %d of %d computed, explained as %q %v", d.computed, d.prompt, last.Cause, last.Keys)
	}
}

func TestFloodOfOneOffPromptsLeavesTheConversation(t *testing.T) {
	var budget memory.Budget
	k := startKeptAfter(t, func(s *settings) { s.window = 2048 }, func(l *loaded, s *settings) {
		n := l.network
		s.cacheMemory = int64(l.extraPages)*n.PageBytes() + 3*n.PointBytes() + n.PointBytes()/2
		budget = cacheBudget(n.Network, s.cacheMemory, l.extraPages)
	})
	talk := []message{user(k.document(12, 700) + "\nWhat is it about?")}
	for range 2 {
		a := k.ask(talk, message{"max_tokens": 8})
		talk = append(talk, a.message(), user("Go on."))
	}
	flood := 500
	if testing.Short() {
		flood = 60
	}
	for i := range flood {
		k.ask([]message{user(fmt.Sprintf("One-off %d: what is %d plus %d?", i, i*7, i*3))}, message{"max_tokens": 1})
		if u := k.loaded.keeper.Usage(memory.InMemory); u.OwnBytes > budget.OwnBytes || u.Pages > budget.Pages {
			t.Fatalf("%+v of %+v", u, budget)
		}
	}
	a := k.ask(talk, message{"max_tokens": 8})
	k.atMost("after the flood", a, a.fresh+slack) // the newest turn is restored, not an older one
}

func TestFreshIdInTheSystemPromptIsExplained(t *testing.T) {
	k := startKept(t, nil)
	rules := k.document(13, 300)
	var last keep.Report
	for i := range 4 {
		k.ask([]message{system(fmt.Sprintf("Request id: %08x. %s", 0x1a2b3c4d+i*0x01234567, rules)), user("Hello.")}, message{"max_tokens": 2})
		reports := k.loaded.keeper.Reports()
		last = reports[len(reports)-1]
	}
	if !last.Volatile || last.Change == nil || !strings.Contains(last.Change.Place, "Request id") || last.Change.Old == last.Change.New {
		t.Errorf("explained as %+v, change %+v", last.Explanation, last.Change)
	}
}

func TestNormalizeRuleMakesAFreshIdHitAndTheResponseSaysSo(t *testing.T) {
	rules, err := api.ReadRules([]byte(`[{"pattern": "Request id: [0-9a-f]{8}", "replacement": "Request id: 0"}]`))
	if err != nil {
		t.Fatal(err)
	}
	k := startKept(t, func(s *settings) { s.normalize = rules })
	text := k.document(13, 300)
	ask := func(i int) (asked, string) {
		talk := []message{system(fmt.Sprintf("Request id: %08x. %s", 0x1a2b3c4d+i*0x01234567, text)), user("Hello.")}
		response, err := http.Post(k.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body(talk, message{"max_tokens": 2})))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var r struct{ Slipway struct{ Notice string } }
		if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return k.ask(talk, message{"max_tokens": 2}), r.Slipway.Notice
	}
	ask(0)
	for i := 1; i < 4; i++ {
		before := len(k.prompts)
		_, notice := ask(i)
		reports := k.loaded.keeper.Reports()
		if r := reports[len(reports)-2]; r.Prompt-r.Cached > slack || !slices.Equal(k.prompts[before], k.prompts[0]) {
			t.Errorf("request %d: %d of %d tokens were restored", i, r.Cached, r.Prompt)
		}
		if !strings.Contains(notice, "replaced 1 place in") {
			t.Errorf("the response says %q", notice)
		}
	}
}

// Random talks against a server that keeps and one that does not: the greedy answers are equal.
func TestRandomTalksGetTheAnswersOfAFreshServer(t *testing.T) {
	k := startKept(t, func(s *settings) { s.window, s.cacheMemory = 1024, 24<<20 })
	fresh := startKept(t, func(s *settings) { s.window, s.cacheMemory = 1024, 0 })
	r := rand.New(rand.NewPCG(5, 5))
	requests := 300
	if testing.Short() {
		requests = 40
	}
	short := message{"max_tokens": 6}
	restored := 0
	var talk []message
	for i := range requests {
		switch {
		case len(talk) == 0 || r.IntN(6) == 0:
			talk = []message{system("Be brief. " + k.document(uint64(r.IntN(3)), 60)), user(fmt.Sprintf("Topic %d.", r.IntN(5)))}
		case r.IntN(4) == 0: // edit
			talk[len(talk)-1] = user(fmt.Sprintf("Rather topic %d.", r.IntN(50)))
		case r.IntN(8) == 0: // leave in the middle, go on with what came
			part := k.leave(talk, 1+r.IntN(9), 0)
			talk = append(talk, message{"role": "assistant", "content": part}, user("Go on."))
		}
		a := k.ask(talk, short)
		restored += a.prompt - a.computed
		b := fresh.replay(k, short)
		if strings.TrimSpace(a.content) != strings.TrimSpace(b) {
			t.Fatalf("request %d: %q, a fresh server says %q", i, a.content, b)
		}
		talk = append(talk, a.message(), user(fmt.Sprintf("And %d?", r.IntN(9))))
		if len(talk) > 9 {
			talk = nil
		}
	}
	if restored < 20*requests {
		t.Errorf("only %d tokens were restored in %d requests", restored, requests)
	}
}

// replay computes the same ids from nothing, which is the answer that a fresh engine gives to them.
func (k *kept) replay(from *kept, more message) string {
	k.t.Helper()
	from.mu.Lock()
	prompt := from.prompts[len(from.prompts)-1]
	from.mu.Unlock()
	raw, err := json.Marshal(message{"model": "pocket", "prompt": prompt, "max_tokens": more["max_tokens"]})
	if err != nil {
		k.t.Fatal(err)
	}
	response, err := http.Post(k.URL+"/v1/completions", "application/json", bytes.NewReader(raw))
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	var r struct{ Choices []struct{ Text string } }
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil || len(r.Choices) != 1 {
		k.t.Fatalf("%v, %d choices", err, len(r.Choices))
	}
	return r.Choices[0].Text
}

// A client, or its user, may change a reply before sending it back. The state inside a reply is not kept, so that everything
// from the turn before it on is computed, and nothing else.
func TestReplyChangedInItsMiddleIsBoundedByTheTurnBefore(t *testing.T) {
	k := startKept(t, nil)
	more := message{"max_tokens": 60, "logit_bias": k.noEnd()}
	talk := []message{user(k.document(17, 500) + "\nWhat is it about?")}
	turns := []int{} // where each reply's turn began
	for i := range 3 {
		a := k.ask(talk, more)
		turns = append(turns, a.prompt-k.header())
		talk = append(talk, a.message(), user(fmt.Sprintf("Question %d?", i)))
	}
	for i, turn := range turns {
		edited := slices.Clone(talk[:2*i+3])
		words := strings.Fields(edited[2*i+1]["content"].(string))
		if len(words) < 4 {
			t.Fatalf("the reply %q has no middle", words)
		}
		words[len(words)/2] = "instead"
		edited[2*i+1] = message{"role": "assistant", "content": strings.Join(words, " ")}
		a := k.ask(edited, more)
		k.atMost(fmt.Sprintf("reply %d changed", i+1), a, a.prompt-turn+slack)
	}
}

// header is how many tokens open a reply, the empty thinking included.
func (k *kept) header() int { return len(k.special("<|im_start|>assistant\n<think>\n\n</think>\n\n")) }

// A client that keeps no thinking calls tools in a loop. The id that it sends back leads to what was streamed.
func TestThinkingThatAClientLeftOutOfAToolLoopIsFoundByTheCallsId(t *testing.T) {
	k := startKept(t, nil)
	k.script = func(i int) []int32 {
		thought := k.letterByLetter(fmt.Sprintf("The lamp %d is what I must look up, and I say so at some length here.\n", i))
		call := k.letterByLetter(fmt.Sprintf("\n<function=look>\n<parameter=word>\nlamp %d\n</parameter>\n<parameter=count>\n%d\n</parameter>\n</function>\n", i, i))
		return slices.Concat(thought, k.special("</think>\n\n<tool_call>"), call, k.special("</tool_call><|im_end|>"))
	}
	tool := message{"type": "function", "function": message{"name": "look", "parameters": message{"type": "object",
		"properties": message{"word": message{"type": "string"}, "count": message{"type": "integer"}}}}}
	more := message{"tools": []any{tool}, "max_tokens": 400, "chat_template_kwargs": message{"enable_thinking": true}}
	talk := []message{system(k.document(9, 200)), user("Look up words, one after another.")}
	var call map[string]any
	for i := range 4 {
		a := k.ask(talk, more)
		if i > 0 {
			k.atMost(fmt.Sprintf("call %d", i), a, a.fresh+slack)
			if a.fresh > 30 { // what the tool said and the headers around it
				t.Errorf("call %d: %d tokens are called new", i, a.fresh)
			}
		}
		if a.reasoning == "" || len(a.calls) != 1 {
			t.Fatalf("thought %q, %d calls", a.reasoning, len(a.calls))
		}
		call = a.calls[0].(map[string]any)
		talk = append(talk, message{"role": "assistant", "content": nil, "tool_calls": []any{call}},
			message{"role": "tool", "tool_call_id": call["id"], "content": fmt.Sprintf("result %d", i)})
	}
	// With other arguments the call is the client's own, and so is its turn.
	call["function"].(map[string]any)["arguments"] = `{"word": "lamp 9", "count": 3}`
	before := len(k.prompts)
	k.ask(talk, more)
	if prompt := k.loaded.text.Tokenizer.Decode(k.prompts[before]); strings.Contains(prompt, "The lamp 3 is what I must") || !strings.Contains(prompt, "The lamp 2 is what I must") {
		t.Errorf("the prompt is %q", prompt)
	}
}

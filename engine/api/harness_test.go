package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/engine/api"
	"slipway/engine/families/qwen35"
	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/serve/servetest"
	"slipway/engine/text"
)

// pocket is the embedded model's text side; the network behind it is a double whose reply is scripted.
var pocket = sync.OnceValue(func() *text.Model {
	m, err := text.Load(qwen35.Text, "../../manifests/pocket")
	if err != nil {
		panic(err)
	}
	return m
})

func encode(s string) []int32 {
	return pocket().Tokenizer.Encode(s, text.EncodeOptions{SpecialTokens: true})
}

// server is an API on a real port.
type server struct {
	*httptest.Server
	net    *servetest.Network
	engine *serve.Engine
	log    *logBuffer
	script atomic.Pointer[[]int32]
	prompt atomic.Pointer[[]int32] // that the network saw when it chose the first token
}

type setup struct {
	window, chunk, queue int
	keepAlive            time.Duration
	bodyBytes            int64
	key, originKey       *api.Key
	origins              []string
	pass                 func([]pass.Segment) error
	wrap                 func(api.Engine) api.Engine
}

func start(t testing.TB, how setup) *server {
	t.Helper()
	orInt := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	orInt(&how.window, 2048)
	orInt(&how.chunk, 512)
	if how.keepAlive == 0 {
		how.keepAlive = time.Hour
	}
	if how.bodyBytes == 0 {
		how.bodyBytes = 1 << 20
	}
	tokenizer := pocket().Tokenizer
	end, _ := tokenizer.ID("<|im_end|>")
	s := &server{log: &logBuffer{}}
	s.say("Hello!")
	s.net = &servetest.Network{Vocab: 4096, Window: how.window, Chunk: how.chunk, Pass: how.pass,
		Next: func(history []int32) int32 {
			reply := *s.script.Load()
			for k := min(len(reply), len(history)); k >= 0; k-- {
				if !slices.Equal(history[len(history)-k:], reply[:k]) {
					continue
				}
				if k == 0 {
					seen := slices.Clone(history)
					s.prompt.Store(&seen)
				}
				if k == len(reply) {
					return end
				}
				return reply[k]
			}
			panic("unreachable")
		}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	metrics := api.NewMetrics(log, func() serve.Status { return s.engine.Status() }, "v", "pocket", "")
	engine, err := serve.New(s.net, serve.Options{Parallel: 2, Queue: how.queue, VocabTokens: tokenizer.VocabSize(),
		EndTokens: []int32{end},
		Now:       time.Now, Log: log, OnEnd: metrics.OnEnd})
	if err != nil {
		t.Fatal(err)
	}
	s.engine = engine
	var seen api.Engine = engine
	if how.wrap != nil {
		seen = how.wrap(engine)
	}
	defaults := sample.Neutral()
	defaults.Temperature = 0
	handler := api.New(api.Options{
		Engine: seen, Text: pocket(), Defaults: defaults,
		ModelID: "pocket", Revision: strings.Repeat("ab", 20), Version: "9.9", LaunchID: "launch-7", PID: 42,
		Started: time.Unix(1_700_000_000, 0),
		Key:     how.key, OriginKey: how.originKey, AllowOrigins: how.origins,
		BodyBytes: how.bodyBytes, KeepAlive: how.keepAlive, Now: time.Now, Log: log, Metrics: metrics,
	}).Handler()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	s.Server = httptest.NewServer(handler)
	t.Cleanup(func() {
		cancel()
		<-ran
		s.Server.Close()
	})
	return s
}

// say scripts the next replies' text, tags included.
func (s *server) say(reply string) {
	ids := encode(reply)
	s.script.Store(&ids)
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is a response read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (s *server) post(t *testing.T, path, body string, change ...func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return do(t, r, change...)
}

func (s *server) get(t *testing.T, path string, change ...func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r, change...)
}

func do(t *testing.T, r *http.Request, change ...func(*http.Request)) answer {
	t.Helper()
	for _, c := range change {
		c(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// chat gives a body: the members in front of one user message.
func chat(members string) string {
	return `{"model":"pocket","messages":[{"role":"user","content":"Hi"}]` + members + `}`
}

const thinkingOff = `,"chat_template_kwargs":{"enable_thinking":false}`

// reply is what the tests read of a whole reply.
type reply struct {
	ID      string
	Object  string
	Model   string
	Choices []struct {
		Index   int
		Text    string
		Message struct {
			Role      string
			Content   *string
			Reasoning string `json:"reasoning_content"`
			ToolCalls []call `json:"tool_calls"`
		}
		Logprobs     json.RawMessage
		FinishReason string `json:"finish_reason"`
	}
	Usage   usageRead
	Slipway struct{ Notice string }
	Error   *struct{ Message, Type, Param, Code string }
}

type usageRead struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Slipway struct {
		Computed int `json:"computed_tokens"`
		Notice   string
	}
}

type call struct {
	Index    *int
	ID       string
	Type     string
	Function struct{ Name, Arguments string }
}

func decode[T any](t *testing.T, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func (s *server) ask(t *testing.T, members string) reply {
	t.Helper()
	a := s.post(t, "/v1/chat/completions", chat(members))
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	return decode[reply](t, a.body)
}

// chunk is what the tests read of a stream's event.
type chunk struct {
	Object  string
	Choices []struct {
		Index int
		Text  string
		Delta struct {
			Role      string
			Content   *string
			Reasoning *string `json:"reasoning_content"`
			ToolCalls []call  `json:"tool_calls"`
		}
		Logprobs     json.RawMessage
		FinishReason *string `json:"finish_reason"`
	}
	Usage   *usageRead
	Slipway struct{ Notice string }
	Error   *struct{ Message, Code string }
}

// events reads a stream event by event.
type events struct {
	t        *testing.T
	response *http.Response
	scanner  *bufio.Scanner
}

func (s *server) open(t *testing.T, ctx context.Context, path, body string) *events {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	return &events{t, response, bufio.NewScanner(response.Body)}
}

// next gives the next event; ok is false at [DONE] or the end, and whole says which.
func (e *events) next() (c chunk, ok, whole bool) {
	e.t.Helper()
	for e.scanner.Scan() {
		line := e.scanner.Text()
		if line == "" {
			continue
		}
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			e.t.Fatalf("a line that is no event: %q", line)
		}
		if data == "[DONE]" {
			return chunk{}, false, true
		}
		return decode[chunk](e.t, []byte(data)), true, false
	}
	return chunk{}, false, false
}

// all reads the rest of a stream, which must be whole.
func (e *events) all() []chunk {
	e.t.Helper()
	var all []chunk
	for {
		c, ok, whole := e.next()
		if !ok {
			if !whole {
				e.t.Error("the stream ends without [DONE]")
			}
			return all
		}
		all = append(all, c)
	}
}

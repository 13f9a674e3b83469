package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"slipway/engine/families/qwen35/calltest"
)

// heard is a reply as the client of a wire reads it.
type heard struct {
	thinking, content, finish, notice string
	calls                             []call
	prompt, completion                int
	raw                               any // the reply as the client keeps it
}

// ask is a request in no wire's form: "Hi", then later turns.
type ask struct {
	tools, thinking, stream bool
	maxTokens               int
	later                   []any
	also                    object // members of the wire
}

type object = map[string]any

// speaker is a wire's client.
type speaker struct {
	name, path string
	body       func(ask) object
	whole      func(*testing.T, []byte) heard
	streamed   func(*testing.T, []byte) heard
	back       func(heard) []any // the reply and what its calls gave, as the client sends them back
	user       func(string) any
}

// speakers are the wires beside OpenAI's chat, whose tests are its own.
var speakers = []speaker{anthropicClient, responsesClient, ollamaClient}

func (s *server) hear(t *testing.T, by speaker, q ask) heard {
	t.Helper()
	a := s.tell(t, by, q)
	if a.status != http.StatusOK {
		t.Fatalf("%s: status %d: %s", by.name, a.status, a.body)
	}
	if q.stream {
		return by.streamed(t, a.body)
	}
	return by.whole(t, a.body)
}

func (s *server) tell(t *testing.T, by speaker, q ask) answer {
	t.Helper()
	body, err := json.Marshal(by.body(q))
	if err != nil {
		t.Fatal(err)
	}
	return s.post(t, by.path, string(body))
}

// toolList gives the tools of [calltest] by a function that writes one in the wire's form.
func toolList(write func(name string, parameters any) object) []object {
	var list []struct {
		Function struct {
			Name       string
			Parameters any
		}
	}
	if err := json.Unmarshal([]byte(calltest.ToolsJSON), &list); err != nil {
		panic(err)
	}
	var tools []object
	for _, t := range list {
		if t.Function.Parameters == nil {
			t.Function.Parameters = object{"type": "object"}
		}
		tools = append(tools, write(t.Function.Name, t.Function.Parameters))
	}
	return tools
}

// A reply says the same streamed and in one piece on every wire, and what the slow reader of the whole text finds; and
// the server accepts it back.
func TestEveryWireReadsRandomRepliesAlike(t *testing.T) {
	rounds := 50
	if os.Getenv("SLIPWAY_SOAK") != "" {
		rounds = 2000
	}
	for _, by := range speakers {
		t.Run(by.name, func(t *testing.T) {
			s := start(t, setup{})
			r := rand.New(rand.NewPCG(20, 3))
			called := 0
			for i := range rounds {
				text := calltest.RandomReply(r)
				if strings.HasPrefix(text, "\n") || strings.HasPrefix(text, "<think>") {
					text = "So " + text // the double would take the prompt's end for what it has written
				}
				s.say(text)
				ids := *s.script.Load()
				q := ask{tools: true, thinking: r.IntN(3) == 0, maxTokens: 1000}
				cut := r.IntN(4) == 0 && len(ids) > 0
				if cut {
					ids = ids[:1+r.IntN(len(ids))]
					q.maxTokens = len(ids)
				}
				want := calltest.Read(pocket().Tokenizer.Decode(ids), calltest.Tools, q.thinking, cut)
				plain := s.hear(t, by, q)
				q.stream = true
				stream := s.hear(t, by, q)
				got := said(t, plain.thinking, plain.content, plain.calls)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("reply %d, %q (%+v)\ngot  %+v\nwant %+v", i, text, q, got, want)
				}
				if again := said(t, stream.thinking, stream.content, stream.calls); !reflect.DeepEqual(again, got) ||
					stream.content != plain.content || stream.thinking != plain.thinking ||
					stream.finish != plain.finish || stream.completion != plain.completion ||
					stream.notice != plain.notice {
					t.Fatalf("reply %d, %q:\nplain  %+v\nstream %+v", i, text, plain, stream)
				}
				for _, reply := range []heard{plain, stream} {
					if len(reply.calls) > 0 {
						called++
					}
					later := append(by.back(reply), by.user("Go on."))
					if a := s.tell(t, by, ask{tools: true, maxTokens: 1, later: later}); a.status != 200 {
						t.Fatalf("reply %d, %q, sent back: status %d: %s", i, text, a.status, a.body)
					}
				}
			}
			if called < rounds/20 {
				t.Errorf("%d of %d replies called: the test saw too little", called, rounds)
			}
		})
	}
}

// What people write and models answer is in no log, whichever wire it came by, also where it was refused.
func TestNoWireLogsWhatWasSaid(t *testing.T) {
	for _, by := range speakers {
		t.Run(by.name, func(t *testing.T) {
			s := start(t, setup{})
			s.say("canary-thought\n</think>\n\ncanary-answer")
			for _, q := range []ask{
				{thinking: true, maxTokens: 100, later: []any{by.user("canary-question")}},
				{thinking: true, maxTokens: 100, stream: true, later: []any{by.user("canary-question")}},
				{maxTokens: 100, also: object{"canary-member": "canary-value"}},
				{maxTokens: 100, later: []any{object{"role": "canary-role", "content": "canary-content"}}},
				{maxTokens: 100, later: []any{by.user(strings.Repeat("canary-long ", 2000))}},
			} {
				s.tell(t, by, q)
			}
			if strings.Contains(s.log.String(), "canary") || !strings.Contains(s.log.String(), "refused") {
				t.Errorf("log: %s", s.log.String())
			}
		})
	}
}

// readEvents gives the events of a stream; each must bear the name of its type.
func readEvents(t *testing.T, raw []byte, each func(kind string, data []byte)) {
	t.Helper()
	for _, event := range strings.Split(strings.TrimSuffix(string(raw), "\n\n"), "\n\n") {
		if event == ":" {
			continue
		}
		name, data, ok := strings.Cut(event, "\ndata: ")
		var kind struct{ Type string }
		if err := json.Unmarshal([]byte(data), &kind); !ok || err != nil || name != "event: "+kind.Type {
			t.Fatalf("not an event with the name of its type: %q", event)
		}
		each(kind.Type, []byte(data))
	}
}

func unmarshal(t *testing.T, raw []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
}

func messagesOf(first any, q ask) []any { return append([]any{first}, q.later...) }

func (q ask) onto(body object) object {
	if q.stream {
		body["stream"] = true
	}
	for name, value := range q.also {
		body[name] = value
	}
	return body
}

package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recordedAgent is an agent's traffic: testdata/agents/README.md.
type recordedAgent struct {
	Client, Path string
	Replies      []recordedReply
	Requests     []json.RawMessage
}

type recordedReply struct {
	Thinking, Text, Name string
	Arguments            map[string]json.RawMessage
}

// ids writes a reply as the model does, in tokens that the tokenizer would not choose.
func (k *kept) ids(r recordedReply) []int32 {
	written := r.Thinking + "\n</think>\n\n" + r.Text
	if r.Name != "" {
		written += "\n\n<tool_call>\n<function=" + r.Name + ">\n"
		for name, raw := range r.Arguments {
			value := string(raw)
			if json.Unmarshal(raw, &value) != nil {
				value = string(raw)
			}
			written += "<parameter=" + name + ">\n" + value + "\n</parameter>\n"
		}
		written += "</function>\n</tool_call>"
	}
	var ids []int32
	tags := regexp.MustCompile(`</?(think|tool_call)>`)
	at := 0
	for _, tag := range tags.FindAllStringIndex(written, -1) {
		ids = append(ids, k.letterByLetter(written[at:tag[0]])...)
		ids = append(ids, k.special(written[tag[0]:tag[1]])...)
		at = tag[1]
	}
	return slices.Concat(ids, k.letterByLetter(written[at:]), k.special("<|im_end|>"))
}

// Real agents' traffic on each wire: a turn computes what is new in it, and hardly more.
func TestAgentsComputeOnlyWhatIsNew(t *testing.T) {
	files, err := filepath.Glob("testdata/agents/*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var agent recordedAgent
			if err := json.Unmarshal(raw, &agent); err != nil || len(agent.Requests) < 10 {
				t.Fatal(err, len(agent.Requests))
			}
			k := startKept(t, nil)
			script := map[int][]int32{}
			for i, r := range agent.Replies {
				script[i] = k.ids(r)
			}
			k.script = func(i int) []int32 { return script[i] }
			ours := map[string]string{} // ids of calls, by the recorded ones
			computed, prompts := 0, 0
			for i, request := range agent.Requests {
				body := string(request)
				for theirs, id := range ours {
					body = strings.ReplaceAll(body, theirs, id)
				}
				reply := k.send(agent.Path, body)
				for _, id := range regexp.MustCompile(`"call_[0-9a-f]{24}"`).FindAllString(reply.raw, 1) {
					ours[fmt.Sprintf(`"call_%024x"`, i)] = id
				}
				if agent.Replies[i].Name != "" && ours[fmt.Sprintf(`"call_%024x"`, i)] == "" {
					t.Fatalf("turn %d calls nothing: %s", i, reply.raw)
				}
				fresh := k.fresh(i)
				computed, prompts = computed+reply.computed, prompts+reply.prompt
				if reply.computed > fresh+slack {
					t.Errorf("turn %d: %d of %d tokens were computed, %d are new", i, reply.computed, reply.prompt,
						fresh)
				}
				// What was never processed is what the client has added, unless it asks something new: then the
				// template leaves out the thinking before it.
				if added := k.tokens(body) - k.tokens(string(agent.Requests[max(i-1, 0)])); i > 0 &&
					i < len(agent.Requests)-1 && fresh > added+100 {
					t.Errorf("turn %d: %d tokens are new, and some %d were added", i, fresh, added)
				}
			}
			if computed > prompts/2 {
				t.Errorf("%d of %d tokens were computed", computed, prompts)
			}
		})
	}
}

// A conversation that was begun on one wire is found in the cache on another, tools and all.
func TestConversationIsFoundOnAnotherWire(t *testing.T) {
	k := startKept(t, nil)
	k.script = func(int) []int32 { return slices.Concat(k.letterByLetter("It is a lamp."), k.special("<|im_end|>")) }
	write := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	instructions, said := k.document(7, 300), message{"role": "assistant", "content": "It is a lamp."}
	schema := message{"type": "object", "properties": message{"word": message{"type": "string", "description": "It."}}}
	function := message{"name": "look", "description": "Looks a word up.", "parameters": schema}
	conversation := []message{user("What is it?")}
	for i, wire := range []struct {
		path string
		more message
		in   string // the member that has the conversation
	}{
		{"/v1/chat/completions", message{"reasoning_effort": "none", "stream_options": message{"include_usage": true},
			"tools": []any{message{"type": "function", "function": function}}}, "messages"},
		{"/v1/messages", message{"max_tokens": 100, "system": instructions, "tools": []any{message{"name": "look",
			"input_schema": schema, "description": "Looks a word up."}}}, "messages"},
		{"/v1/responses", message{"reasoning": message{"effort": "none"}, "instructions": instructions,
			"tools": []any{message{"type": "function", "name": "look", "parameters": schema, "strict": false,
				"description": "Looks a word up."}}}, "input"},
	} {
		wire.more["model"], wire.more["stream"], wire.more[wire.in] = "pocket", true, conversation
		if i == 0 {
			wire.more[wire.in] = append([]message{system(instructions)}, conversation...)
		}
		reply := k.send(wire.path, write(wire.more))
		if i > 0 && (k.fresh(i) > 40 || reply.computed > k.fresh(i)+slack) {
			t.Errorf("%s: %d of %d tokens were computed, %d are new", wire.path, reply.computed, reply.prompt,
				k.fresh(i))
		}
		conversation = append(conversation, said, user("And what else?"))
	}
}

// sent is the outcome of a streamed request on any wire.
type sent struct {
	raw              string
	prompt, computed int
}

func (k *kept) send(path, body string) sent {
	k.t.Helper()
	response, err := http.Post(k.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		k.t.Fatalf("%v, status %d: %s", err, response.StatusCode, raw)
	}
	s := sent{raw: string(raw)}
	for _, line := range bytes.Split(raw, []byte("\n")) {
		data, is := bytes.CutPrefix(line, []byte("data: "))
		if !is || string(data) == "[DONE]" {
			continue
		}
		type usage struct {
			Slipway *struct {
				Computed int `json:"computed_tokens"`
			}
			Prompt int `json:"prompt_tokens"`
			Input  int `json:"input_tokens"`
			Cached int `json:"cache_read_input_tokens"`
		}
		var event struct {
			Usage    *usage
			Response struct{ Usage *usage }
		}
		if err := json.Unmarshal(data, &event); err != nil {
			k.t.Fatal(err)
		}
		if event.Usage == nil {
			event.Usage = event.Response.Usage
		}
		if u := event.Usage; u != nil && u.Slipway != nil {
			s.prompt, s.computed = u.Prompt+u.Input+u.Cached, u.Slipway.Computed
		}
	}
	if s.prompt == 0 {
		k.t.Fatalf("no usage in %s", raw)
	}
	return s
}

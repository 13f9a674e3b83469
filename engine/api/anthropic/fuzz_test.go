package anthropic

import (
	"testing"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/families/qwen35"
	"slipway/engine/sample"
	"slipway/engine/text"
)

// FuzzMessagesBody: whatever arrives is understood or refused with a 4xx that says why; nothing panics.
func FuzzMessagesBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"x-anthropic-billing-header: a"}],"messages":[{"role":"user","content":"Hi"}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"x"}]}]}],"stop_sequences":["a"],"thinking":{"type":"adaptive"}}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"a","name":"f","input":{}}]}]}`,
		`{"model":"m","max_tokens":1,"messages":[null],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"f"}}`,
		`{"model":"m","messages":[{"role":"system","content":[]}],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{}}}}`,
		`{"a":`, `{"":1}`, `[`, ``, "\x00", `{"model":"m"`, `{} {}`, `{"model":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	model, err := text.Load(qwen35.Text, "../../../manifests/pocket")
	if err != nil {
		f.Fatal(err)
	}
	w := New(turn.New(turn.Options{Model: turn.Model{ID: "m"}, Defaults: sample.Neutral(), Text: model}), nil, 0)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range []func(*web.Object) *turn.Error{
			func(o *web.Object) *turn.Error { _, _, err := w.readMessages(o); return err },
			func(o *web.Object) *turn.Error { _, err := w.readCount(o); return err },
		} {
			o, err := web.ReadBody(body)
			if err == nil {
				err = read(o)
			}
			if err != nil {
				status, document := w.Error(err)
				if status < 400 || status > 499 || err.Sentence == "" || document == nil {
					t.Errorf("%+v", err)
				}
			}
			if err == nil && o.Err() != nil {
				t.Errorf("an error is lost: %v", o.Err())
			}
		}
	})
}

package openai

import (
	"testing"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/families/qwen35"
	"slipway/engine/sample"
	"slipway/engine/text"
)

// FuzzBody: whatever arrives is understood or refused with a 4xx that says why; nothing panics.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"stop":["a"],"logit_bias":{"1":-1},"seed":1}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`,
		`{"model":"m","messages":[null],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`,
		`{"model":"m","messages":[{}],"stream":true,"stream_options":{"include_usage":true},"chat_template_kwargs":{"enable_thinking":true}}`,
		`{"model":"m","input":"Hi","instructions":"x","previous_response_id":"resp_1"}`,
		`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"x"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{","namespace":"n"},{"type":"function_call_output","call_id":"a","output":[1]},{"type":"item_reference","id":"x"}]}`,
		`{"model":"m","input":[null],"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"web_search"}],"tool_choice":{"type":"function","name":"f"},"text":{"format":{"type":"json_schema","schema":{}}}}`,
		`{"prompt":"x"}`, `{"content":1}`, `{"model":"m","response_format":{"type":"json_schema","json_schema":{"schema":{}}},"n":4}`,
		`{"model":"m","stop":[],"tools":{},"messages":{}}`, `{"a":`, `{"":1}`, `[`, ``, "\x00", `{"model":"m"`, `{} {}`,
		`{"model":"\ud800"}`,
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
			func(o *web.Object) *turn.Error { _, _, err := w.readChat(o); return err },
			func(o *web.Object) *turn.Error { _, _, err := w.readText(o); return err },
			func(o *web.Object) *turn.Error { _, err := w.readResponse(o); return err },
			func(o *web.Object) *turn.Error { _, err := w.readTokenize(o); return err },
		} {
			o, err := web.ReadBody(body)
			if err == nil {
				err = read(o)
			}
			if err != nil && (web.StatusOf(err.Kind) < 400 || web.StatusOf(err.Kind) > 499 || err.Sentence == "" ||
				typeOf(err.Kind) == "") {
				t.Errorf("%+v", err)
			}
			if err == nil && o.Err() != nil {
				t.Errorf("an error is lost: %v", o.Err())
			}
		}
	})
}

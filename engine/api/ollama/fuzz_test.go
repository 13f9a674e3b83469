package ollama

import (
	"testing"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/families/qwen35"
	"slipway/engine/sample"
	"slipway/engine/text"
)

// FuzzChatBody: whatever arrives is understood or refused with a 4xx that says why; nothing panics.
func FuzzChatBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m:latest","messages":[{"role":"user","content":"Hi","images":[]}],"options":{"num_predict":-1,"stop":["a"],"seed":1}}`,
		`{"model":"m","messages":[{"role":"assistant","thinking":"x","tool_calls":[{"id":"a","function":{"index":0,"name":"f","arguments":{"a":1}}}]},{"role":"tool","tool_name":"f"}]}`,
		`{"model":"m","messages":[],"think":"low","tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"format":{"type":"object"}}`,
		`{"model":"m","messages":[null],"think":true,"stream":false,"keep_alive":-1,"tools":[{}]}`,
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
			func(o *web.Object) *turn.Error { _, _, err := w.readChat(o); return err },
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

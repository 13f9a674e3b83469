package api

import (
	"testing"

	"slipway/engine/sample"
	"slipway/engine/text"
)

// FuzzChatBody: whatever arrives is understood or refused with a 4xx that says why; nothing panics.
func FuzzChatBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"stop":["a"],"logit_bias":{"1":-1},"seed":1}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`,
		`{"model":"m","messages":[null],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`,
		`{"model":"m","messages":[{}],"stream":true,"stream_options":{"include_usage":true},"chat_template_kwargs":{"enable_thinking":true}}`,
		`{"model":"m","stop":[],"tools":{},"messages":{}}`, `{"a":`, `{"":1}`, `[`, ``, "\x00", `{"model":"m"`, `{} {}`, `{"model":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	template, err := text.NewTemplate("{{ messages }}", nil)
	if err != nil {
		f.Fatal(err)
	}
	s := &Server{opt: Options{ModelID: "m", VocabTokens: 10, Defaults: sample.Neutral(), Template: template}}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range []func(*object) *Error{
			func(o *object) *Error { _, err := s.readChat(o); return err },
			func(o *object) *Error {
				o.take("prompt")
				delete(o.members, "prompt")
				_, err := s.readText(o)
				return err
			},
		} {
			o, err := readBody(body)
			if err == nil {
				err = read(o)
			}
			if err != nil && (err.Status < 400 || err.Status > 499 || err.Message == "" || err.Type == "") {
				t.Errorf("%+v", err)
			}
			if err == nil && o.err != nil {
				t.Errorf("an error is lost: %v", o.err)
			}
		}
	})
}

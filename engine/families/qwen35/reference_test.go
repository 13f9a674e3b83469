package qwen35

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"slipway/engine/families/qwen35/calltest"
	"slipway/engine/text/family"
)

// saidBy is what the streaming parser makes of a reply.
func saidBy(t *testing.T, opt family.ParserOptions, cut bool, pieces ...string) (said calltest.Said) {
	t.Helper()
	p := NewOutputParser(opt)
	var events []family.Event
	for _, piece := range pieces {
		events = append(events, p.Push(piece)...)
	}
	for _, e := range append(events, p.Close(cut)...) {
		switch e.Kind {
		case family.ReasoningDelta:
			said.Reasoning += e.Text
		case family.ContentDelta:
			said.Content += e.Text
		case family.ToolCallStart:
			said.Calls = append(said.Calls, calltest.Call{Name: e.Name})
		case family.ToolCallArguments:
			d := json.NewDecoder(strings.NewReader(e.Text))
			d.UseNumber()
			if err := d.Decode(&said.Calls[e.Index].Arguments); err != nil {
				t.Fatalf("arguments %q: %v", e.Text, err)
			}
		}
	}
	said.Reasoning, said.Content = strings.TrimSpace(said.Reasoning), strings.TrimSpace(said.Content)
	return said
}

func TestParserEqualsTheReference(t *testing.T) {
	var tools []json.RawMessage
	if err := json.Unmarshal([]byte(calltest.ToolsJSON), &tools); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(20, 1))
	called, several := 0, 0
	for range 6000 {
		reply := calltest.RandomReply(r)
		thinking, cut := r.IntN(3) == 0, r.IntN(4) == 0
		opt := family.ParserOptions{ThinkingOpen: thinking, Tools: tools}
		want := calltest.Read(reply, calltest.Tools, thinking, cut)
		at := r.IntN(len(reply) + 1)
		if got := saidBy(t, opt, cut, reply[:at], reply[at:]); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q (thinking %v, cut %v)\ngot  %+v\nwant %+v", reply, thinking, cut, got, want)
		}
		if len(want.Calls) > 0 {
			called++
		}
		if len(want.Calls) > 1 {
			several++
		}
	}
	if called < 400 || several < 60 {
		t.Errorf("%d replies called, %d of them more than once: the test saw too little", called, several)
	}
}

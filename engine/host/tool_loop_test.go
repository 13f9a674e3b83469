package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestToolLoopWithRewrittenArguments(t *testing.T) {
	k := startKept(t, nil)
	// The model writes its calls in tokens that the tokenizer would not choose.
	k.script = func(i int) []int32 {
		call := k.letterByLetter(
			fmt.Sprintf("\n<function=look>\n<parameter=word>\nlamp "+
				"%d\n</parameter>\n<parameter=count>\n%d\n</parameter>\n</function>\n", i, i))
		return slices.Concat(k.special("<tool_call>"), call, k.special("</tool_call><|im_end|>"))
	}
	tool := message{"type": "function", "function": message{"name": "look", "description": "Looks a word up.",
		"parameters": message{"type": "object",
			"properties": message{"word": message{"type": "string"}, "count": message{"type": "integer"}}}}}
	more := message{"tools": []any{tool}, "max_tokens": 200}
	conversation := []message{system(k.document(9, 200)), user("Look up words, one after another.")}
	for i := range 20 {
		a := k.ask(conversation, more)
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
		if err := json.Unmarshal([]byte(function["arguments"].(string)), &arguments); err != nil ||
			len(arguments) != 2 {
			t.Fatal(err, arguments)
		}
		pretty, err := json.MarshalIndent(arguments, "", "    ") // count comes before word now
		if err != nil {
			t.Fatal(err)
		}
		function["arguments"] = string(pretty)
		conversation = append(conversation, message{"role": "assistant", "content": "", "tool_calls": []any{call}},
			message{"role": "tool", "tool_call_id": call["id"], "content": fmt.Sprintf("result %d", i)})
	}
}

// A client that keeps no thinking calls tools in a loop. The id that it sends back leads to what was streamed.
func TestThinkingThatAClientLeftOutOfAToolLoopIsFoundByTheCallsID(t *testing.T) {
	k := startKept(t, nil)
	k.script = func(i int) []int32 {
		thought := k.letterByLetter(
			fmt.Sprintf("The lamp %d is what I must look up, and I say so at some length here.\n", i))
		call := k.letterByLetter(
			fmt.Sprintf("\n<function=look>\n<parameter=word>\nlamp "+
				"%d\n</parameter>\n<parameter=count>\n%d\n</parameter>\n</function>\n", i, i))
		return slices.Concat(thought, k.special("</think>\n\n<tool_call>"), call, k.special("</tool_call><|im_end|>"))
	}
	tool := message{"type": "function", "function": message{"name": "look", "parameters": message{"type": "object",
		"properties": message{"word": message{"type": "string"}, "count": message{"type": "integer"}}}}}
	more := message{"tools": []any{tool}, "max_tokens": 400, "chat_template_kwargs": message{"enable_thinking": true}}
	conversation := []message{system(k.document(9, 200)), user("Look up words, one after another.")}
	var call map[string]any
	for i := range 4 {
		a := k.ask(conversation, more)
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
		conversation = append(conversation, message{"role": "assistant", "content": nil, "tool_calls": []any{call}},
			message{"role": "tool", "tool_call_id": call["id"], "content": fmt.Sprintf("result %d", i)})
	}
	// With other arguments the call is the client's own, and so is its turn.
	call["function"].(map[string]any)["arguments"] = `{"word": "lamp 9", "count": 3}`
	before := len(k.prompts)
	k.ask(conversation, more)
	if prompt := k.host.text.Tokenizer.Decode(k.prompts[before]); strings.Contains(
		prompt, "The lamp 3 is what I must") || !strings.Contains(prompt, "The lamp 2 is what I must") {
		t.Errorf("the prompt is %q", prompt)
	}
}

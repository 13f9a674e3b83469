package ollama

import (
	"encoding/json"
	"math"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
)

// readChat takes the body of /api/chat.
func (w *Wire) readChat(o *web.Object) (q *turn.Request, stream bool, failure *turn.Error) {
	q = &turn.Request{Param: "messages", ThinkingOff: `"think": false`, TopLogprobs: -1, Seed: turn.NewSeed(),
		Sampling: w.turns.Defaults()}
	if err := w.readModel(o); err != nil {
		return nil, false, err
	}
	if raw := o.Peek("messages"); len(raw) > 0 && string(raw) != "null" && string(raw) != "[]" {
		for i, raw := range o.Items("messages") {
			m, err := readMessage(web.Element("messages", i), raw)
			o.Keep(err)
			q.Conversation.Messages = append(q.Conversation.Messages, m)
		}
	}
	o.Ignore("messages", "keep_alive", "truncate", "shift")
	readTools(o, q)
	switch raw := o.Peek("think"); web.KindOf(raw) {
	case "a boolean":
		thinks, _ := o.Boolean("think")
		w.turns.SetThinking(q, thinks)
	case "a string":
		effort, _ := o.Text("think")
		o.Keep(w.turns.SetEffort(q, "think", effort))
	}
	if raw := o.Take("format"); raw != nil && string(raw) != `""` {
		q.Format = &turn.Format{Param: "format"}
		switch {
		case raw[0] == '{':
			q.Format.Schema = raw
		case string(raw) != `"json"`:
			o.Fail("format", "is neither \"json\" nor a schema")
		}
	}
	w.readOptions(o, q)
	stream, given := o.Boolean("stream")
	o.Only("logprobs", "this wire reports no log probabilities", "false")
	o.Only("top_logprobs", "this wire reports no log probabilities", "0")
	if n := len(q.Conversation.Messages); n > 0 {
		last := q.Conversation.Messages[n-1]
		q.Continue = last.Role == "assistant" && len(last.ToolCalls) == 0
	}
	return q, stream || !given, o.Done()
}

// readOptions takes options.
func (w *Wire) readOptions(o *web.Object, q *turn.Request) {
	options := o.Sub("options")
	if options == nil {
		return
	}
	p := &q.Sampling
	for name, to := range map[string]*float64{"temperature": &p.Temperature, "top_p": &p.TopP, "min_p": &p.MinP,
		"presence_penalty": &p.PresencePenalty, "frequency_penalty": &p.FrequencyPenalty,
		"repeat_penalty": &p.RepetitionPenalty} {
		if v, given := options.Number(name); given {
			*to = v
		}
	}
	if v, given := options.Integer("top_k", 0, math.MaxInt32); given {
		p.TopK = int(v)
	}
	if v, given := options.Integer("seed", math.MinInt64, math.MaxInt64); given {
		q.Seed = uint64(v)
	}
	if v, given := options.Integer("num_predict", math.MinInt32, math.MaxInt32); given && v == 0 {
		options.Fail("num_predict", "is 0; it must be at least 1, or below 0 for no limit")
	} else {
		q.MaxTokens = int(max(v, 0))
	}
	q.Stop = options.Stops("stop")
	options.Only("mirostat", "this server has no such sampler", "0")
	options.Only("typical_p", "this server has no such sampler", "1", "1.0")
	options.Only("tfs_z", "this server has no such sampler", "1", "1.0")
	options.Ignore("mirostat_eta", "mirostat_tau", "num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu",
		"num_thread", "use_mmap", "use_mlock", "numa", "low_vram", "f16_kv", "vocab_only")
	if options.Err() == nil {
		if err := p.Check(w.turns.VocabTokens()); err != nil {
			options.Keep(turn.AsError(err))
		}
	}
	o.Keep(options.Done())
}

func readMessage(path string, raw json.RawMessage) (m text.Message, failure *turn.Error) {
	o, err := web.ReadObject(path, raw)
	if err != nil {
		return m, err
	}
	switch m.Role, _ = o.Text("role"); m.Role {
	case "system", "user", "tool":
	case "assistant":
		if thinking, given := o.Text("thinking"); given && thinking != "" {
			m.ReasoningContent = &thinking
		}
		m.ToolCalls = readCalls(o)
	default:
		o.Fail("role", "is %.40q; allowed: system, user, assistant, tool", m.Role)
	}
	m.Content, _ = o.Text("content")
	m.ToolCallID, _ = o.Text("tool_call_id")
	m.Name, _ = o.Text("tool_name")
	o.Only("images", "this server reads text only", "[]")
	return m, o.Done()
}

func readCalls(o *web.Object) (calls []text.ToolCall) {
	elements, _ := o.Array("tool_calls")
	for i, raw := range elements {
		call, err := web.ReadObject(web.Element(o.At("tool_calls"), i), raw)
		if err != nil {
			o.Keep(err)
			return nil
		}
		c := text.ToolCall{}
		c.ID, _ = call.Text("id")
		call.Only("type", "functions are the only tools here", `"function"`)
		if f := call.Sub("function"); f == nil {
			call.Fail("function", "is required")
		} else {
			if c.Name, _ = f.Text("name"); c.Name == "" {
				f.Fail("name", "is required")
			}
			c.Arguments = turn.ReadArguments(f.Take("arguments"))
			f.Ignore("index", "description")
			call.Keep(f.Done())
		}
		o.Keep(call.Done())
		calls = append(calls, c)
	}
	return calls
}

// readTools takes tools; the model calls them as it likes.
func readTools(o *web.Object, q *turn.Request) {
	elements, _ := o.Array("tools")
	for i, raw := range elements {
		tool, err := web.ReadObject(web.Element("tools", i), raw)
		if err != nil {
			o.Keep(err)
			return
		}
		tool.Only("type", "functions are the only tools here", `"function"`)
		f := tool.Sub("function")
		if f == nil {
			o.Keep(tool.Err())
			o.Fail("tools", "holds a tool without function")
			return
		}
		t := turn.Tool{Param: tool.At("function"), Parameters: f.Raw("parameters")}
		t.Name, _ = f.Text("name")
		t.Description, _ = f.Text("description")
		t.Strict, _ = f.Boolean("strict")
		tool.Keep(f.Done())
		o.Keep(tool.Done())
		q.Tools = append(q.Tools, t)
	}
	if len(q.Tools) == 0 {
		q.Choice.Calling = turn.CallNone
	}
}

package openai

import (
	"encoding/json"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// readTools takes tools, tool_choice and parallel_tool_calls.
func readTools(o *web.Object, q *turn.Request) {
	elements, _ := o.Array("tools")
	for i, raw := range elements {
		t, err := readTool(web.Element("tools", i), raw)
		o.Keep(err)
		q.Tools = append(q.Tools, t)
	}
	q.Choice = readToolChoice(o, len(q.Tools) > 0)
	parallel, given := o.Boolean("parallel_tool_calls")
	q.OneCall = given && !parallel
	for _, name := range []string{"functions", "function_call"} {
		if o.Has(name) {
			o.Ignore(name)
			o.Fail(name, "is not supported; use tools and tool_choice")
		}
	}
}

func readTool(path string, raw json.RawMessage) (turn.Tool, *turn.Error) {
	o, err := web.ReadObject(path, raw)
	if err != nil {
		return turn.Tool{}, err
	}
	if !o.Has("type") {
		o.Fail("type", "is required")
	}
	o.Only("type", "functions are the only tools here", `"function"`)
	o.Ignore("cache_control")
	f := o.Sub("function")
	if f == nil {
		o.Fail("function", "is required")
		return turn.Tool{}, o.Done()
	}
	t := turn.Tool{Param: o.At("function"), Parameters: f.Raw("parameters")}
	t.Name, _ = f.Text("name")
	t.Description, _ = f.Text("description")
	t.Strict, _ = f.Boolean("strict")
	o.Keep(f.Done())
	return t, o.Done()
}

func readToolChoice(o *web.Object, tools bool) turn.Choice {
	raw := o.Take("tool_choice")
	if raw == nil {
		if tools {
			return turn.Choice{}
		}
		return turn.Choice{Calling: turn.CallNone}
	}
	if raw[0] == '"' {
		kind, _ := o.Text("tool_choice")
		switch kind {
		case "auto":
			return turn.Choice{}
		case "none":
			return turn.Choice{Calling: turn.CallNone}
		case "required":
			return turn.Choice{Param: "tool_choice", Calling: turn.CallRequired}
		}
		o.Fail("tool_choice", "is %.40q; allowed: auto, none, required, or an object that names a function", kind)
		return turn.Choice{}
	}
	sub := o.Sub("tool_choice")
	if sub == nil {
		return turn.Choice{}
	}
	sub.Only("type", "a function is the only thing that can be chosen", `"function"`)
	c := turn.Choice{Param: "tool_choice", Calling: turn.CallNamed}
	if f := sub.Sub("function"); f == nil {
		sub.Fail("function", "is required")
	} else {
		given := false
		if c.Name, given = f.Text("name"); !given {
			f.Fail("name", "is required")
		}
		sub.Keep(f.Done())
	}
	o.Keep(sub.Done())
	return c
}

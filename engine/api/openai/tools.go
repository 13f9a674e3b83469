package openai

import (
	"encoding/json"
	"regexp"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// toolName is OpenAI's rule.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// readTools takes tools, tool_choice and parallel_tool_calls.
func readTools(o *web.Object) (tools []turn.Tool, chosen turn.Choice, parallel bool) {
	elements, _ := o.Array("tools")
	names := map[string]bool{}
	for i, raw := range elements {
		t, err := readTool(web.Element("tools", i), raw)
		if err != nil {
			o.Keep(err)
			return nil, turn.Choice{}, false
		}
		if names[t.Name] {
			o.Fail("tools", "names the function %q twice", t.Name)
		}
		names[t.Name] = true
		tools = append(tools, t)
	}
	chosen = readToolChoice(o, len(tools) > 0)
	switch {
	case chosen.Calling == turn.CallNamed && !names[chosen.Name]:
		o.Fail("tool_choice", "names the function %.64q, which is not among the tools", chosen.Name)
	case chosen.Calling == turn.CallRequired && len(tools) == 0:
		o.Fail("tool_choice", "is \"required\", but there are no tools")
	}
	parallel, given := o.Boolean("parallel_tool_calls")
	for _, name := range []string{"functions", "function_call"} {
		if o.Has(name) {
			o.Ignore(name)
			o.Fail(name, "is not supported; use tools and tool_choice")
		}
	}
	return tools, chosen, parallel || !given
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
	t := turn.Tool{Raw: raw}
	sub := o.Take("function")
	if sub == nil {
		o.Fail("function", "is required")
		return t, o.Done()
	}
	f, err := web.ReadObject(o.At("function"), sub)
	if err != nil {
		return t, err
	}
	t.Name, _ = f.Text("name")
	if !toolName.MatchString(t.Name) {
		f.Fail("name", "must be 1 to 64 letters, digits, _ or -")
	}
	f.Text("description")
	if parameters := f.Take("parameters"); parameters != nil && parameters[0] != '{' {
		f.Fail("parameters", "must be a JSON schema object, not %s", web.KindOf(parameters))
	}
	f.Only("strict", "arguments cannot be held to their schema yet", "false")
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
			return turn.Choice{Calling: turn.CallRequired}
		}
		o.Fail("tool_choice", "is %.40q; allowed: auto, none, required, or an object that names a function", kind)
		return turn.Choice{}
	}
	sub, err := web.ReadObject("tool_choice", raw)
	if err != nil {
		o.Keep(err)
		return turn.Choice{}
	}
	sub.Only("type", "a function is the only thing that can be chosen", `"function"`)
	c := turn.Choice{Calling: turn.CallNamed}
	if raw := sub.Take("function"); raw == nil {
		sub.Fail("function", "is required")
	} else if f, err := web.ReadObject("tool_choice.function", raw); err != nil {
		sub.Keep(err)
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

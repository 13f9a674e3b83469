package api

import (
	"encoding/json"
	"regexp"
)

// tool is one function that the model may call.
type tool struct {
	name string
	raw  json.RawMessage // as the client sent it, order of members kept
}

// choice is what tool_choice says.
type choice struct {
	kind string // "auto", "none", "required" or "named"
	name string // of the function, where named
}

// toolName is OpenAI's rule.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// readTools takes tools, tool_choice and parallel_tool_calls.
func readTools(o *object) (tools []tool, chosen choice, parallel bool) {
	elements, _ := o.array("tools")
	names := map[string]bool{}
	for i, raw := range elements {
		t, err := readTool(element("tools", i), raw)
		if err != nil {
			o.keep(err)
			return nil, choice{}, false
		}
		if names[t.name] {
			o.fail("tools", "names the function %q twice", t.name)
		}
		names[t.name] = true
		tools = append(tools, t)
	}
	chosen = readToolChoice(o, len(tools) > 0)
	switch {
	case chosen.kind == "named" && !names[chosen.name]:
		o.fail("tool_choice", "names the function %.64q, which is not among the tools", chosen.name)
	case chosen.kind == "required" && len(tools) == 0:
		o.fail("tool_choice", "is \"required\", but there are no tools")
	}
	parallel, given := o.boolean("parallel_tool_calls")
	for _, name := range []string{"functions", "function_call"} {
		if o.has(name) {
			o.ignore(name)
			o.fail(name, "is not supported; use tools and tool_choice")
		}
	}
	return tools, chosen, parallel || !given
}

func readTool(path string, raw json.RawMessage) (tool, *Error) {
	o, err := readObject(path, raw)
	if err != nil {
		return tool{}, err
	}
	if !o.has("type") {
		o.fail("type", "is required")
	}
	o.only("type", "functions are the only tools here", `"function"`)
	o.ignore("cache_control")
	t := tool{raw: raw}
	sub := o.take("function")
	if sub == nil {
		o.fail("function", "is required")
		return t, o.done()
	}
	f, err := readObject(o.at("function"), sub)
	if err != nil {
		return t, err
	}
	t.name, _ = f.str("name")
	if !toolName.MatchString(t.name) {
		f.fail("name", "must be 1 to 64 letters, digits, _ or -")
	}
	f.str("description")
	if parameters := f.take("parameters"); parameters != nil && parameters[0] != '{' {
		f.fail("parameters", "must be a JSON schema object, not %s", kindOf(parameters))
	}
	f.only("strict", "arguments cannot be held to their schema yet", "false")
	o.keep(f.done())
	return t, o.done()
}

func readToolChoice(o *object, tools bool) choice {
	raw := o.take("tool_choice")
	if raw == nil {
		if tools {
			return choice{kind: "auto"}
		}
		return choice{kind: "none"}
	}
	if raw[0] == '"' {
		kind, _ := o.str("tool_choice")
		switch kind {
		case "auto", "none", "required":
			return choice{kind: kind}
		}
		o.fail("tool_choice", "is %.40q; allowed: auto, none, required, or an object that names a function", kind)
		return choice{}
	}
	sub, err := readObject("tool_choice", raw)
	if err != nil {
		o.keep(err)
		return choice{}
	}
	sub.only("type", "a function is the only thing that can be chosen", `"function"`)
	c := choice{kind: "named"}
	if raw := sub.take("function"); raw == nil {
		sub.fail("function", "is required")
	} else if f, err := readObject("tool_choice.function", raw); err != nil {
		sub.keep(err)
	} else {
		given := false
		if c.name, given = f.str("name"); !given {
			f.fail("name", "is required")
		}
		sub.keep(f.done())
	}
	o.keep(sub.done())
	return c
}

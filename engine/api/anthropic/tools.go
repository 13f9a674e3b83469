package anthropic

import (
	"encoding/json"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// readTools takes tools and tool_choice.
func readTools(o *web.Object, q *turn.Request) {
	elements, _ := o.Array("tools")
	for i, raw := range elements {
		t, err := readTool(web.Element("tools", i), raw)
		o.Keep(err)
		q.Tools = append(q.Tools, t)
	}
	if len(q.Tools) == 0 {
		q.Choice.Calling = turn.CallNone
	}
	c := o.Sub("tool_choice")
	if c == nil {
		return
	}
	q.Choice = turn.Choice{Param: "tool_choice"}
	switch kind, _ := c.Text("type"); kind {
	case "auto":
	case "none":
		q.Choice.Calling = turn.CallNone
	case "any":
		q.Choice.Calling = turn.CallRequired
	case "tool":
		q.Choice.Calling = turn.CallNamed
		given := false
		if q.Choice.Name, given = c.Text("name"); !given {
			c.Fail("name", "is required")
		}
	default:
		c.Fail("type", "is %.40q; allowed: auto, any, tool, none", kind)
	}
	q.OneCall, _ = c.Boolean("disable_parallel_tool_use")
	o.Keep(c.Done())
}

func readTool(path string, raw json.RawMessage) (turn.Tool, *turn.Error) {
	o, err := web.ReadObject(path, raw)
	if err != nil {
		return turn.Tool{}, err
	}
	t := turn.Tool{Param: path}
	t.Name, _ = o.Text("name")
	if kind, given := o.Text("type"); given && kind != "custom" {
		o.Fail("type", "is %.40q; this server runs no tools, and its model knows none by a type alone. Leave it out, "+
			"or give it as a tool with an input_schema", kind)
	}
	t.Description, _ = o.Text("description")
	if t.Parameters = o.Raw("input_schema"); t.Parameters == nil {
		o.Fail("input_schema", "is required")
	}
	t.Strict, _ = o.Boolean("strict")
	o.Only("defer_loading", "the model sees every tool", "false")
	o.Only("allowed_callers", "only the model calls tools", `["direct"]`)
	o.Ignore("cache_control", "eager_input_streaming")
	return t, o.Done()
}

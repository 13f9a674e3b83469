package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"slipway/checks/client"
)

// all are the tools of every request.
var all = []client.Tool{
	tool("get_weather", "Get the current weather of a city", map[string]any{"city": kind("string")}),
	tool("read_file", "Read a file of the project", map[string]any{"path": kind("string")}),
	tool("save_record", "Save a record", map[string]any{
		"text": kind("string"), "count": kind("integer"), "ratio": kind("number"), "open": kind("boolean"),
		"missing": kind("null"),
		"list":    map[string]any{"type": "array", "items": kind("integer")},
		"place": map[string]any{"type": "object", "properties": map[string]any{
			"row": kind("integer"), "name": kind("string")}, "required": []string{"row", "name"}},
	}),
}

func kind(name string) map[string]any { return map[string]any{"type": name} }

func tool(name, what string, properties map[string]any) client.Tool {
	var required []string
	for property := range properties {
		required = append(required, property)
	}
	slices.Sort(required)
	return client.Tool{Type: "function", Function: client.Function{Name: name, Description: what,
		Parameters: map[string]any{"type": "object", "properties": properties, "required": required}}}
}

// call is one that is wanted. Values are those of encoding/json: numbers are float64.
type call struct {
	name string
	with map[string]any
}

func arguments(c client.ToolCall) (map[string]any, error) {
	var with map[string]any
	if err := json.Unmarshal([]byte(c.Function.Arguments), &with); err != nil {
		return nil, err
	}
	if with == nil {
		return nil, errors.New("null")
	}
	return with, nil
}

// differs says how a call is not the one that is wanted; "" where it is.
func (want call) differs(c client.ToolCall) string {
	if c.Function.Name != want.name {
		return fmt.Sprintf("%s is called, where %s was asked for", c.Function.Name, want.name)
	}
	with, err := arguments(c)
	if err != nil {
		return "the arguments are no JSON object: " + c.Function.Arguments
	}
	var names []string
	for name := range want.with {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		got, there := with[name]
		if !there {
			return fmt.Sprintf("%s has no %s", want.name, name)
		}
		if !reflect.DeepEqual(got, want.with[name]) {
			return fmt.Sprintf("%s of %s is %s, where %s was asked for", name, want.name, shown(got),
				shown(want.with[name]))
		}
	}
	if len(with) != len(want.with) {
		return fmt.Sprintf("%s has %d arguments, where %d were asked for", want.name, len(with), len(want.with))
	}
	return ""
}

// shown writes a value with its JSON type.
func shown(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	switch value.(type) {
	case string:
		return "the text " + string(raw)
	case float64:
		return "the number " + string(raw)
	}
	return string(raw)
}

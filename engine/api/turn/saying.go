package turn

import (
	"encoding/json"
	"reflect"
	"strings"

	"slipway/engine/serve"
	"slipway/engine/text"
	"slipway/engine/text/family"
)

// saying is a message that can be compared: white space around it, the writing of the arguments, and arguments that are
// their schema's default do not count. Clients fill those in (Claude Code does for its Edit).
type saying struct {
	reasoning, content string
	calls              []sayingCall
	broken             bool // arguments that are no JSON
}

type sayingCall struct {
	name      string
	arguments map[string]any
}

// turnReader reads what assistants' turns say.
type turnReader struct {
	family   *family.Family
	tools    []json.RawMessage         // as templates read them
	defaults map[string]map[string]any // of parameters, by function
}

func (s *Service) turnReader(tools []json.RawMessage) *turnReader {
	return &turnReader{s.opt.Text.Family, tools, defaultsOf(tools)}
}

// read reads an assistant's turn from its text.
func (t *turnReader) read(whole string) saying {
	parser := t.family.NewParser(family.ParserOptions{Tools: t.tools})
	r := Reply{reading: &reading{parser: parser}, callID: func(int) string { return "" }}
	for _, e := range r.reading.push(whole, serve.FinishStop) {
		r.step(e)
	}
	var c Collector
	for _, e := range r.events {
		c.Add(e)
	}
	m := c.Message()
	said := saying{reasoning: strings.TrimSpace(m.Reasoning), content: strings.TrimSpace(m.Content)}
	for _, call := range m.Calls {
		t.addCall(&said, call.Name, call.Arguments)
	}
	return said
}

// of gives what a message says beside its thinking.
func (t *turnReader) of(m text.Message) saying {
	said := saying{content: strings.TrimSpace(m.Content)}
	for _, call := range m.ToolCalls {
		t.addCall(&said, call.Name, string(call.Arguments))
	}
	return said
}

func (t *turnReader) addCall(s *saying, name, arguments string) {
	c := sayingCall{name: name}
	if decode(arguments, &c.arguments) != nil {
		s.broken = true
	}
	for parameter, value := range t.defaults[name] {
		if given, ok := c.arguments[parameter]; ok && reflect.DeepEqual(given, value) {
			delete(c.arguments, parameter)
		}
	}
	s.calls = append(s.calls, c)
}

// equal reports whether two turns say the same. One with broken arguments equals none.
func (s saying) equal(o saying) bool {
	return !s.broken && !o.broken && s.reasoning == o.reasoning && s.content == o.content &&
		reflect.DeepEqual(s.calls, o.calls)
}

// decode reads JSON and keeps numbers as they are written.
func decode(written string, to any) error {
	decoder := json.NewDecoder(strings.NewReader(written))
	decoder.UseNumber()
	return decoder.Decode(to)
}

// defaultsOf gives the defaults that tools, as templates read them, name for their parameters.
func defaultsOf(tools []json.RawMessage) map[string]map[string]any {
	defaults := map[string]map[string]any{}
	for _, raw := range tools {
		var tool struct {
			Function struct {
				Name       string
				Parameters struct {
					Properties map[string]json.RawMessage
				}
			}
		}
		if json.Unmarshal(raw, &tool) != nil {
			continue // nothing is known of it
		}
		of := map[string]any{}
		for name, property := range tool.Function.Parameters.Properties {
			var schema map[string]any
			if decode(string(property), &schema) == nil {
				if value, given := schema["default"]; given {
					of[name] = value
				}
			}
		}
		defaults[tool.Function.Name] = of
	}
	return defaults
}

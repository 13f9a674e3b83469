package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var (
	weatherIn = regexp.MustCompile(`the weather in ([A-Z][a-z]+)(?: and in ([A-Z][a-z]+))?\?`)
	readFile  = regexp.MustCompile(`Read the file (\S+)\.`)
	saveAll   = regexp.MustCompile(`(?s)Call save_record with exactly these arguments: (\{.*\})`)
	degrees   = regexp.MustCompile(`"temperature": (-?\d+)`)
)

// answerWithTools calls what is asked for, or speaks of a result.
func (s *server) answerWithTools(q request) (string, []toolCall) {
	last := q.Messages[len(q.Messages)-1]
	if last.Role == "tool" {
		if m := degrees.FindStringSubmatch(s.result(q)); m != nil && s.mode != "forgets-results" {
			return "It is " + m[1] + " degrees.", nil
		}
		return "I do not know.", nil
	}
	if q.Choice == "none" || s.mode == "no-tools" {
		return "I cannot look.", nil
	}
	var calls []toolCall
	add := func(name string, arguments string) {
		c := toolCall{ID: fmt.Sprintf("call_%d_%d", len(q.Messages), len(calls)), Type: "function"}
		c.Function.Name, c.Function.Arguments = name, arguments
		if s.mode == "broken-tools" {
			c.Function.Arguments = strings.TrimSuffix(arguments, "}")
		}
		calls = append(calls, c)
	}
	if m := weatherIn.FindStringSubmatch(last.Content); m != nil {
		for _, city := range m[1:] {
			if city != "" && (len(calls) == 0 || s.mode != "single-tools") {
				add("get_weather", fmt.Sprintf(`{"city":%q}`, city))
			}
		}
	}
	if m := readFile.FindStringSubmatch(last.Content); m != nil {
		add("read_file", fmt.Sprintf(`{"path":%q}`, m[1]))
	}
	if m := saveAll.FindStringSubmatch(last.Content); m != nil {
		arguments := m[1]
		if s.mode == "string-tools" {
			var with map[string]any
			if json.Unmarshal([]byte(arguments), &with) == nil {
				for name, value := range with {
					with[name] = fmt.Sprint(value)
				}
			}
			raw, err := json.Marshal(with)
			if err != nil {
				panic(err)
			}
			arguments = string(raw)
		}
		add("save_record", arguments)
	}
	if len(calls) == 0 {
		return "Hello! What shall I do?", nil
	}
	return "", calls
}

// result is the last tool's; mode stale remembers the first one of a conversation that began alike.
func (s *server) result(q request) string {
	said := q.Messages[len(q.Messages)-1].Content
	if s.mode != "stale" {
		return said
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	head := q.Messages[0].Content + q.Messages[len(q.Messages)-1].ToolCallID
	for _, o := range s.old {
		if o.head == head {
			return o.text
		}
	}
	s.old = append(s.old, old{head, said})
	return said
}

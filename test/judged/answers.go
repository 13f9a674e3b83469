package main

import (
	"regexp"
	"strings"
)

var (
	fact     = regexp.MustCompile(`(?:access )?code (?:of|for) the ([a-z]+ [a-z]+) is (?:now )?(\d{6})`)
	question = regexp.MustCompile(`What is the access code for the ([a-z]+ [a-z]+)\?`)
)

// old is a document that mode stale keeps answering from.
type old struct{ head, text string }

// answer finds what is asked for in the conversation.
func (s *server) answer(q request) (string, []toolCall) {
	if len(q.Tools) > 0 {
		return s.answerWithTools(q)
	}
	var all strings.Builder
	for _, m := range q.Messages {
		if m.Role != "assistant" {
			all.WriteString(m.Content + "\n")
		}
	}
	text := all.String()
	last := q.Messages[len(q.Messages)-1].Content
	if s.mode == "stale" {
		text = s.remembered(text)
	}
	facts, order := map[string]string{}, []string{}
	for _, m := range fact.FindAllStringSubmatch(text, -1) {
		if _, known := facts[m[1]]; !known {
			order = append(order, m[1])
		}
		facts[m[1]] = m[2]
	}
	if s.mode == "forgetful" {
		order = order[:len(order)/2]
	}
	if m := question.FindAllStringSubmatch(last, -1); m != nil {
		name := m[len(m)-1][1]
		if code, ok := facts[name]; ok && (s.mode != "forgetful" || strings.Contains(strings.Join(order, ","), name)) {
			return "The access code for the " + name + " is " + code + ".", nil
		}
		return "The document has no access code for the " + name + ".", nil
	}
	if strings.Contains(last, "List every access code in the document, in order.") {
		var lines []string
		for _, name := range order {
			lines = append(lines, name+": "+facts[name])
		}
		return strings.Join(lines, "\n "), nil
	}
	return s.puzzle(text), nil
}

// remembered gives the document that was seen first with this beginning.
func (s *server) remembered(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := text[:min(len(text), 200)]
	for _, o := range s.old {
		if o.head == head {
			return o.text
		}
	}
	s.old = append(s.old, old{head, text})
	return text
}

// puzzle is every other task: those of RULER are beyond this double, and anything else is repeated.
func (s *server) puzzle(text string) string {
	if strings.Contains(text, "special magic") || strings.Contains(text, "\nQuestion:") {
		return "I do not know."
	}
	return strings.Join(strings.Fields(text), " ")
}

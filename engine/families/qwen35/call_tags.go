package qwen35

import (
	"strings"
)

const (
	callTag      = "<tool_call>"
	callEnd      = "</tool_call>"
	functionTag  = "<function="
	functionEnd  = "</function>"
	parameterTag = "<parameter="
	parameterEnd = "</parameter>"
	// parameterNamedEnd closes a parameter by its own name, </parameter=NAME>.
	parameterNamedEnd = "</parameter="
)

// maxNameBytes bounds a function's or parameter's name.
const maxNameBytes = 256

// callMark is one tag of the form of calls, at text[at:end].
type callMark struct {
	tag     string // one of the constants
	at, end int
	name    string // of an opening or a named end; empty: it has none that can be read
}

// opens gives the tag that a closing tag closes; empty for an opening one.
func (m callMark) opens() string {
	switch m.tag {
	case callEnd:
		return callTag
	case functionEnd:
		return functionTag
	case parameterEnd, parameterNamedEnd:
		return parameterTag
	}
	return ""
}

// callMarks finds the tags in a text, in order. A name ends with > or with its line; one that reaches another tag is
// none.
func callMarks(text string) (marks []callMark) {
	tags := []string{callTag, callEnd, functionTag, functionEnd, parameterTag, parameterEnd, parameterNamedEnd}
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '<')
		if next < 0 {
			return marks
		}
		at += next
		m := callMark{at: at}
		for _, tag := range tags {
			if strings.HasPrefix(text[at:], tag) {
				m.tag = tag
			}
		}
		if m.tag == "" {
			at++
			continue
		}
		m.end = at + len(m.tag)
		if strings.HasSuffix(m.tag, "=") {
			rest := text[m.end:min(len(text), m.end+maxNameBytes+1)]
			if end := strings.IndexAny(rest, "<>\n"); end >= 0 && rest[end] != '<' {
				m.name = unquoted(strings.TrimSpace(rest[:end]))
				m.end += end
				if rest[end] == '>' {
					m.end++
				}
			}
		}
		marks = append(marks, m)
		at = m.end
	}
}

// unquoted takes the quotes off a name.
func unquoted(name string) string {
	if n := len(name); n >= 2 && (name[0] == '"' || name[0] == '\'') && name[n-1] == name[0] {
		return strings.TrimSpace(name[1 : n-1])
	}
	return name
}

func blank(s string) bool { return strings.TrimLeft(s, whiteSpace) == "" }

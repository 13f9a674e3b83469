package qwen35

import (
	"strings"

	"slipway/engine/text/family"
)

// OutputParser splits a reply into thinking, content and tool calls as it streams:
//
// thinking </think> content <tool_call> <function=NAME> <parameter=NAME> value </parameter> … </function> </tool_call>
// …
//
// It holds back only what may still become a tag, newlines that end a section, and arguments that are not strings
// until they are whole. How the text is split into pushes changes how events are split, and nothing else.
//
// Taken leniently: a <think> where a section begins (repeated, or by a model that opens its thinking itself); a
// call inside thinking, which ends it; a call without its closing tags. <tool_call> not followed by <function=NAME>
// stays text. A call in which the reply ends before its name is dropped, its tags included; one that has its name
// gets no family.ToolCallEnd; [OutputParser.Unfinished] reports both. Newlines around thinking, after </think> and
// around calls belong to the form and are left out.
//
// A forced opening ("<tool_call>\n<function=") is pushed like any text of the reply.
type OutputParser struct {
	tools map[string]toolSchema

	pending string // read, not yet certain
	state   func(*OutputParser, bool) bool
	events  []family.Event

	section  family.EventKind // family.ReasoningDelta or family.ContentDelta
	begun    bool             // the section has text
	trim     bool             // newlines at the section's start are left out
	newlines string           // that may end the section

	calls      int
	call       callState
	unfinished bool
}

// NewOutputParser begins a reply. Tools whose JSON cannot be read have no schema: their arguments are strings.
func NewOutputParser(opt family.ParserOptions) *OutputParser {
	p := &OutputParser{tools: readToolSchemas(opt.Tools), state: (*OutputParser).inText, section: family.ContentDelta}
	if opt.ThinkingOpen {
		p.section, p.trim = family.ReasoningDelta, true
	}
	return p
}

// Push takes more of the reply and gives what became certain.
func (p *OutputParser) Push(s string) []family.Event {
	p.pending += s
	return p.run(false)
}

// Close ends the reply and gives the rest. The parser cannot be used again.
func (p *OutputParser) Close() []family.Event {
	events := p.run(true)
	if p.section == family.ContentDelta && p.newlines != "" {
		p.event(family.Event{Kind: family.ContentDelta, Text: p.newlines})
		events, p.events, p.newlines = append(events, p.events...), nil, ""
	}
	return events
}

// Unfinished reports, after Close, that the reply ended inside a call.
func (p *OutputParser) Unfinished() bool { return p.unfinished }

// run steps through the states until one needs more text. A state takes from pending and reports whether to go on.
func (p *OutputParser) run(final bool) []family.Event {
	for p.state(p, final) {
	}
	events := p.events
	p.events = nil
	return events
}

const (
	thinkTag     = "<think>"
	thinkEnd     = "</think>"
	callTag      = "<tool_call>"
	callEnd      = "</tool_call>"
	functionTag  = "<function="
	functionEnd  = "</function>"
	parameterTag = "<parameter="
	parameterEnd = "</parameter>"

	whiteSpace = " \t\r\n"
)

// inText reads thinking or content.
func (p *OutputParser) inText(final bool) bool {
	if !p.begun {
		rest := strings.TrimLeft(p.pending, whiteSpace)
		if after, found := strings.CutPrefix(rest, thinkTag); found {
			p.enter(family.ReasoningDelta, true)
			p.pending = after
			return true
		}
		if !final && strings.HasPrefix(thinkTag, rest) {
			return false
		}
	}
	var tags []string
	if p.section == family.ReasoningDelta {
		tags = append(tags, thinkEnd)
	}
	if len(p.tools) > 0 {
		tags = append(tags, callTag)
	}
	before, tag, after := cutTag(p.pending, final, tags...)
	p.text(before)
	switch p.pending = after; tag {
	case thinkEnd:
		p.enter(family.ContentDelta, true)
	case callTag:
		p.state = (*OutputParser).inOpening
	}
	return tag != ""
}

// enter begins a section; newlines that ended the one before are dropped.
func (p *OutputParser) enter(section family.EventKind, trim bool) {
	p.section, p.begun, p.trim, p.newlines = section, false, trim, ""
	p.state = (*OutputParser).inText
}

// text gives out a piece of the section, less the newlines around it.
func (p *OutputParser) text(s string) {
	if p.trim && !p.begun {
		s = strings.TrimLeft(s, "\n")
	}
	s = p.newlines + s
	body := s
	if p.section == family.ReasoningDelta || len(p.tools) > 0 { // otherwise nothing can end the section
		body = strings.TrimRight(s, "\n")
	}
	p.newlines = s[len(body):]
	if body != "" {
		p.begun = true
		p.event(family.Event{Kind: p.section, Text: body})
	}
}

// event appends e, joined to the event before where that is the same text going on.
func (p *OutputParser) event(e family.Event) {
	if n := len(p.events); n > 0 && e.Text != "" && p.events[n-1].Kind == e.Kind && p.events[n-1].Index == e.Index {
		p.events[n-1].Text += e.Text
		return
	}
	p.events = append(p.events, e)
}

// cutTag cuts s at the first of the tags. Where there is none, tag is empty and after is what may still become one:
// nothing when the text is final.
func cutTag(s string, final bool, tags ...string) (before, tag, after string) {
	at := len(s)
	for _, t := range tags {
		if i := strings.Index(s[:min(len(s), at+len(t))], t); i >= 0 && i < at {
			at, tag = i, t
		}
	}
	if tag != "" {
		return s[:at], tag, s[at+len(tag):]
	}
	if final {
		return s, "", ""
	}
	longest := 0
	for _, t := range tags {
		longest = max(longest, len(t))
	}
	for i := max(0, len(s)-longest+1); i < len(s); i++ {
		for _, t := range tags {
			if strings.HasPrefix(t, s[i:]) {
				return s[:i], "", s[i:]
			}
		}
	}
	return s, "", ""
}

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
// Thinking and content are given out as they come, but for what may still become a tag and newlines that end a
// section. From the first opening of a call on, everything is held: what is a call is decided on the whole of it, when
// the reply ends (see callReader). An opening is <tool_call> with <function= or { behind it, or a bare <function= at
// the
// beginning of a line and outside code fences. One in thinking counts only where no </think> follows; otherwise it is
// thinking. How the text is split into pushes changes how events are split, and nothing else.
//
// Exactly one reading: the calls, then the prose behind them. None or several: text, and [OutputParser.Verdict] says
// which. Where the reply was cut, what has no reading is left out.
//
// Taken leniently: a <think> where a section begins (repeated, or by a model that opens its thinking itself). A
// </think> in content is left out, unless the content is verbatim. Newlines around thinking, after </think> and around
// calls belong to the form and are left out.
//
// A forced opening ("<tool_call>\n<function=") is pushed like any text of the reply.
type OutputParser struct {
	tools   map[string]toolSchema
	holds   func(name, arguments string) bool
	oneCall bool
	keepAll bool // no tag is left out of content

	pending string // read, not yet certain
	state   func(*OutputParser, bool) bool
	events  []family.Event

	section  family.EventKind // family.ReasoningDelta or family.ContentDelta
	begun    bool             // the section has text
	seen     bool             // or had some that was left out
	trim     bool             // newlines at the section's start are left out
	newlines string           // that may end the section
	lines    lineState        // of the section's text
	stray    thinkEndFilter   // of content

	held    strings.Builder // from the opening on
	tried   bool            // the first call was read, and was not certain
	verdict family.Verdict
}

// NewOutputParser begins a reply. Tools whose JSON cannot be read cannot be called.
func NewOutputParser(opt family.ParserOptions) *OutputParser {
	p := &OutputParser{tools: readToolSchemas(opt.Tools), holds: opt.Holds, oneCall: opt.OneCall, keepAll: opt.Verbatim,
		state: (*OutputParser).inText, section: family.ContentDelta}
	if opt.ThinkingOpen {
		p.section, p.trim = family.ReasoningDelta, true
	}
	return p
}

// Push takes more of the reply and gives what became certain.
func (p *OutputParser) Push(s string) []family.Event {
	p.pending += s
	p.run(false)
	return p.taken()
}

// Close ends the reply and gives the rest. cut says that the model did not end it. The parser cannot be used again.
func (p *OutputParser) Close(cut bool) []family.Event {
	p.run(true)
	if p.held.Len() > 0 {
		p.decide(cut)
	}
	if p.section == family.ContentDelta {
		if rest := p.newlines + p.stray.flush(); rest != "" {
			p.newlines = ""
			p.event(family.Event{Kind: family.ContentDelta, Text: rest})
		}
	}
	return p.taken()
}

// Verdict says, after Close, what became of text that looked like a call.
func (p *OutputParser) Verdict() family.Verdict { return p.verdict }

// run steps through the states until one needs more text. A state takes from pending and reports whether to go on.
func (p *OutputParser) run(final bool) {
	for p.state(p, final) {
	}
}

func (p *OutputParser) taken() []family.Event {
	events := p.events
	p.events = nil
	return events
}

const (
	thinkTag = "<think>"
	thinkEnd = "</think>"

	whiteSpace = " \t\r\n"
)

// inText reads thinking or content.
func (p *OutputParser) inText(final bool) bool {
	if !p.begun && !p.seen {
		rest := strings.TrimLeft(p.pending, whiteSpace)
		if after, found := strings.CutPrefix(rest, thinkTag); found {
			p.enter(family.ReasoningDelta, true)
			p.pending = after
			return true
		}
		if after, found := strings.CutPrefix(rest, thinkEnd); found {
			p.enter(family.ContentDelta, true)
			p.pending = after
			return true
		}
		if !final && (strings.HasPrefix(thinkTag, rest) || strings.HasPrefix(thinkEnd, rest)) {
			return false
		}
	}
	var tags []string
	if p.section == family.ReasoningDelta {
		tags = append(tags, thinkEnd)
	}
	if len(p.tools) > 0 {
		tags = append(tags, callTag, functionTag)
	}
	before, tag, after := cutTag(p.pending, final, tags...)
	p.text(before)
	p.pending = after
	switch tag {
	case thinkEnd:
		p.enter(family.ContentDelta, true)
	case callTag:
		p.state = (*OutputParser).inOpening
	case functionTag:
		if p.lines.begins() && !p.lines.fenced() {
			p.hold("", functionTag+after)
		} else {
			p.text(functionTag)
		}
	}
	return tag != ""
}

// inOpening is the state after <tool_call>: <function= or { must follow.
func (p *OutputParser) inOpening(final bool) bool {
	rest := strings.TrimLeft(p.pending, whiteSpace)
	switch {
	case strings.HasPrefix(rest, functionTag) || strings.HasPrefix(rest, "{"):
		p.hold(callTag, p.pending)
		return true
	case strings.HasPrefix(functionTag, rest): // also where nothing follows yet
		if final {
			p.hold(callTag, p.pending)
		}
		return final
	}
	p.text(callTag)
	p.state = (*OutputParser).inText
	return true
}

// hold begins a call that may be one.
func (p *OutputParser) hold(opening, rest string) {
	if p.section == family.ContentDelta {
		if len(p.stray.held) > 0 && p.newlines != "" { // they do not end the section
			p.event(family.Event{Kind: family.ContentDelta, Text: p.newlines})
			p.newlines = ""
		}
		p.event(family.Event{Kind: family.CallHeld})
	}
	p.held.WriteString(opening)
	p.pending = rest
	p.state = (*OutputParser).inHeld
}

// inHeld gathers what is decided at the end. Two things end it earlier: </think>, which makes it thinking, and the
// first
// call of a reply that is to have one only.
func (p *OutputParser) inHeld(final bool) bool {
	if p.section == family.ReasoningDelta {
		before, tag, after := cutTag(p.pending, final, thinkEnd)
		p.held.WriteString(before)
		p.pending = after
		if tag == "" {
			return false
		}
		p.text(p.held.String())
		p.held.Reset()
		p.enter(family.ContentDelta, true)
		return true
	}
	if !p.oneCall || p.tried {
		p.held.WriteString(p.pending)
		p.pending = ""
		return false
	}
	before, tag, after := cutTag(p.pending, final, callEnd)
	p.held.WriteString(before + tag)
	p.pending = after
	if tag == "" {
		return false
	}
	p.tried = true
	found, verdict := readCalls(p.held.String(), p.tools, p.holds, true)
	if verdict == family.Certain && found.plain() {
		p.give(found)
		p.held.Reset()
		p.enter(family.ContentDelta, true)
		return true
	}
	return true
}

// decide reads what was held when the reply has ended.
func (p *OutputParser) decide(cut bool) {
	whole := p.held.String()
	p.held.Reset()
	found, verdict := readCalls(whole, p.tools, p.holds, cut)
	switch {
	case verdict == family.Certain:
		p.give(found)
		p.enter(family.ContentDelta, true)
		p.text(strings.TrimLeft(found.prose, "\n"))
	case cut:
		p.newlines, p.verdict = "", family.CutCall
	default:
		p.verdict = verdict
		p.text(whole)
	}
}

// give gives the calls out.
func (p *OutputParser) give(found callReading) {
	for i, c := range found.calls {
		p.event(family.Event{Kind: family.ToolCallStart, Index: i, Name: c.name})
		p.event(family.Event{Kind: family.ToolCallArguments, Index: i, Text: c.json()})
		p.event(family.Event{Kind: family.ToolCallEnd, Index: i})
	}
}

// enter begins a section; newlines that ended the one before are dropped.
func (p *OutputParser) enter(section family.EventKind, trim bool) {
	p.section, p.begun, p.seen, p.trim, p.newlines, p.lines = section, false, false, trim, "", lineState{}
	p.state = (*OutputParser).inText
}

// text gives out a piece of the section, less the newlines around it.
func (p *OutputParser) text(s string) {
	p.lines.push(s)
	p.seen = p.seen || !blank(s)
	if p.section == family.ContentDelta && !p.keepAll {
		s = p.stray.push(s)
	}
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

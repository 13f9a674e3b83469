package qwen35

import (
	"strings"

	"slipway/engine/text/family"
	"slipway/engine/text/pyjson"
)

// callState is the call being read.
type callState struct {
	index      int
	schema     toolSchema
	parameters int // values written so far

	parameter string  // name of the one being read
	types     typeSet // of its value
	entered   bool    // the value's first character was seen (a newline there is the form's)
	flowing   bool    // a string that is given out as it comes
	value     strings.Builder
}

// maxNameBytes bounds a function's or parameter's name: longer, or with a newline, it is none.
const maxNameBytes = 256

// inOpening is the state after <tool_call>: it reads <function=NAME>.
func (p *OutputParser) inOpening(final bool) bool {
	rest := strings.TrimLeft(p.pending, whiteSpace)
	after, found := strings.CutPrefix(rest, functionTag)
	if !found {
		if strings.HasPrefix(functionTag, rest) {
			return p.cutOff(final)
		}
		return p.notACall()
	}
	end := strings.IndexAny(after, ">\n")
	switch {
	case end < 0 && len(after) <= maxNameBytes:
		return p.cutOff(final)
	case end <= 0 || end > maxNameBytes || after[end] == '\n':
		return p.notACall()
	}
	name := strings.TrimSpace(after[:end])
	p.enter(family.ContentDelta, true)
	p.call = callState{index: p.calls, schema: p.tools[name]}
	p.calls++
	p.event(family.Event{Kind: family.ToolCallStart, Index: p.call.index, Name: name})
	p.pending = after[end+1:]
	p.state = (*OutputParser).inCall
	return true
}

// cutOff waits for more of a call's opening; one that the reply ends in is dropped.
func (p *OutputParser) cutOff(final bool) bool {
	if final {
		p.pending, p.newlines, p.unfinished = "", "", true
	}
	return false
}

// notACall makes the tag text of the section that it came in.
func (p *OutputParser) notACall() bool {
	p.text(callTag)
	p.state = (*OutputParser).inText
	return true
}

// inCall is the state between parameters. What is neither a parameter nor an end is skipped.
func (p *OutputParser) inCall(final bool) bool {
	_, tag, after := cutTag(p.pending, final, parameterTag, functionEnd, callEnd)
	switch tag {
	case "":
		p.pending, p.unfinished = after, final
		return false
	case parameterTag:
		end := strings.IndexAny(after, ">\n")
		switch {
		case end < 0 && len(after) <= maxNameBytes:
			p.pending, p.unfinished = parameterTag+after, final
			return false
		case end <= 0 || end > maxNameBytes || after[end] == '\n':
			p.pending = after
			return true
		}
		c := &p.call
		c.parameter = strings.TrimSpace(after[:end])
		c.types = c.schema.typesOf(c.parameter)
		c.entered, c.flowing = false, false
		c.value.Reset()
		p.pending = after[end+1:]
		p.state = (*OutputParser).inValue
		return true
	}
	if p.call.parameters == 0 {
		p.arguments("{")
	}
	p.arguments("}")
	p.event(family.Event{Kind: family.ToolCallEnd, Index: p.call.index})
	p.pending = after
	p.enter(family.ContentDelta, true)
	if tag == functionEnd {
		p.state = (*OutputParser).afterCall
	}
	return true
}

// inValue reads a value up to </parameter>.
func (p *OutputParser) inValue(final bool) bool {
	piece, tag, after := cutTag(p.pending, final, parameterEnd)
	p.pending = after
	c := &p.call
	if piece != "" && !c.entered {
		c.entered = true
		piece = strings.TrimPrefix(piece, "\n")
	}
	c.value.WriteString(piece)
	if tag == "" {
		p.flow()
		p.unfinished = final
		return false
	}
	value := strings.TrimSuffix(c.value.String(), "\n")
	if c.flowing {
		p.arguments(jsonText(value) + `"`)
	} else {
		p.arguments(p.key() + argumentJSON(value, c.types))
	}
	p.state = (*OutputParser).inCall
	return true
}

// flow gives out what is certain of a value that can only be a string: all but a last newline, once it cannot be null.
func (p *OutputParser) flow() {
	c := &p.call
	if !c.types.onlyText() {
		return
	}
	value := c.value.String()
	if !c.flowing {
		if strings.HasPrefix(null+"\n", value) {
			return
		}
		c.flowing = true
		p.arguments(p.key() + `"`)
	}
	held := ""
	if strings.HasSuffix(value, "\n") {
		value, held = value[:len(value)-1], "\n"
	}
	if value != "" {
		p.arguments(jsonText(value))
	}
	c.value.Reset()
	c.value.WriteString(held)
}

// key begins the next member of the arguments.
func (p *OutputParser) key() string {
	before := ","
	if p.call.parameters == 0 {
		before = "{"
	}
	p.call.parameters++
	return before + `"` + jsonText(p.call.parameter) + `":`
}

func (p *OutputParser) arguments(json string) {
	p.event(family.Event{Kind: family.ToolCallArguments, Index: p.call.index, Text: json})
}

// afterCall is the state after </function>, where </tool_call> is due. Another function may follow in its place.
func (p *OutputParser) afterCall(final bool) bool {
	rest := strings.TrimLeft(p.pending, whiteSpace)
	if after, found := strings.CutPrefix(rest, callEnd); found {
		p.pending = after
		p.state = (*OutputParser).inText
		return true
	}
	if strings.HasPrefix(rest, functionTag) {
		p.state = (*OutputParser).inOpening
		return true
	}
	if strings.HasPrefix(callEnd, rest) || strings.HasPrefix(functionTag, rest) {
		if final {
			p.pending = ""
		}
		return false
	}
	p.state = (*OutputParser).inText
	return true
}

// jsonText is s as the inside of a JSON string.
func jsonText(s string) string {
	var out strings.Builder
	pyjson.AppendText(&out, s)
	return out.String()
}

package qwen35

import (
	"encoding/json"
	"reflect"
	"slices"
	"sort"
	"strings"

	"slipway/engine/text/family"
)

// A model writes values as bare text, so a value may hold the tags that end it: an example of a call, or the source of
// a
// program like this one. What a text means is therefore decided on the whole of it. A reading explains all of the text
// from its first tag on:
//
// - Blocks follow each other with white space between: <tool_call>, one or more functions or one JSON object with name
//     and arguments, </tool_call>. Behind the last there is prose without tags; none where the reply was cut.
// - A function is given, its parameters are known, all required ones are there. One that comes twice has the same
// value.
//   - A value ends with a </parameter> behind which another parameter or the function's end comes. One whose type is no
// string ends where its JSON ends. No value leaves a tag open that begins a line, for then it swallowed the next tag.
// - An end may be missing where no other place could be meant: </parameter> in front of the next tag, if the value has
//     no tags; one of </function> and </tool_call>, the latter not where the reply was cut.
//
// Only a text with exactly one reading is run.

// callReading is one way to read a text.
type callReading struct {
	calls []readCall
	prose string
}

// readCall is a call of a reading.
type readCall struct {
	name      string
	arguments []readArgument
}

type readArgument struct {
	name   string
	value  string // JSON
	marked bool   // the value holds tags
}

// json gives the arguments as a JSON object.
func (c readCall) json() string {
	var out strings.Builder
	out.WriteByte('{')
	for i, a := range c.arguments {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + jsonText(a.name) + `":` + a.value)
	}
	out.WriteByte('}')
	return out.String()
}

// plain reports that no value holds a tag.
func (r callReading) plain() bool {
	for _, c := range r.calls {
		for _, a := range c.arguments {
			if a.marked {
				return false
			}
		}
	}
	return true
}

const (
	// mostCandidates bounds the ends of values that are looked at beside the first possible one of each. A text that
	// needs more is not certain.
	mostCandidates = 64
	// mostMarks bounds the tags of a text: the ends of each value are looked for among all that follow. Three hundred
	// calls with one argument have as many, and take 0.1 s.
	mostMarks = 2048
)

// callReader looks for the readings of a text.
type callReader struct {
	text  string
	marks []callMark
	tools map[string]toolSchema
	cut   bool

	ends       map[int][]valueEnd // by the parameter's mark
	candidates int
	found      []callReading
}

// valueEnd is a place where a value can end.
type valueEnd struct {
	raw    string // the value as it is written
	next   int    // the mark that goes on
	marked bool
}

// readCalls gives the one reading of a text that begins with an opening; the verdict is family.Certain where there is
// one. cut says that the model did not end the text. Calls whose arguments do not hold are no reading; holds may be
// nil.
func readCalls(text string, tools map[string]toolSchema, holds func(name, arguments string) bool, cut bool) (
	callReading, family.Verdict) {
	r := &callReader{text: text, tools: tools, cut: cut, ends: map[int][]valueEnd{}}
	if r.marks = callMarks(text); len(r.marks) > mostMarks {
		return callReading{}, family.NoReading
	}
	if r.is(0, callTag) {
		r.block(0, nil)
	} else if r.is(0, functionTag) {
		r.function(0, nil)
	}
	if holds != nil {
		r.found = slices.DeleteFunc(r.found, func(c callReading) bool {
			return slices.ContainsFunc(c.calls, func(c readCall) bool { return !holds(c.name, c.json()) })
		})
	}
	switch {
	case r.candidates > mostCandidates || len(r.found) > 1:
		return callReading{}, family.SeveralReadings
	case len(r.found) == 0:
		return callReading{}, family.NoReading
	}
	return r.found[0], family.Certain
}

// is reports whether there is an i-th mark and it is one of the tags.
func (r *callReader) is(i int, tags ...string) bool {
	if i >= len(r.marks) {
		return false
	}
	for _, tag := range tags {
		if r.marks[i].tag == tag {
			return true
		}
	}
	return false
}

// follows reports whether the i-th mark is one of the tags and nothing but white space is between it and from.
func (r *callReader) follows(from, i int, tags ...string) bool {
	return r.is(i, tags...) && r.marks[i].at >= from && blank(r.text[from:r.marks[i].at])
}

// enough reports that the search is over: two readings are as good as many.
func (r *callReader) enough() bool { return len(r.found) > 1 || r.candidates > mostCandidates }

// block reads from the <tool_call> at mark i.
func (r *callReader) block(i int, calls []readCall) {
	from := r.marks[i].end
	if at := from + len(r.text[from:]) - len(strings.TrimLeft(r.text[from:], whiteSpace)); at < len(r.text) &&
		r.text[at] == '{' {
		r.jsonCall(at, calls)
		return
	}
	if r.follows(from, i+1, functionTag) {
		r.function(i+1, calls)
	}
}

// jsonCall reads a call written as a JSON object.
func (r *callReader) jsonCall(at int, calls []readCall) {
	length := jsonLength(r.text[at:])
	if length < 0 {
		return
	}
	call, ok := readJSONCall(r.text[at:at+length], r.tools)
	if !ok {
		return
	}
	end := at + length
	next := sort.Search(len(r.marks), func(i int) bool { return r.marks[i].at >= end })
	calls = append(calls[:len(calls):len(calls)], call)
	switch {
	case r.follows(end, next, callEnd):
		r.afterBlock(next+1, calls)
	case !r.cut && next == len(r.marks) && blank(r.text[end:]):
		r.end(end, calls)
	}
}

// function reads from the <function= at mark i.
func (r *callReader) function(i int, calls []readCall) {
	if _, given := r.tools[r.marks[i].name]; given && r.marks[i].name != "" {
		r.members(r.marks[i].end, i+1, readCall{name: r.marks[i].name}, calls)
	}
}

// members reads the rest of a call: mark i must follow from.
func (r *callReader) members(from, i int, c readCall, calls []readCall) {
	switch schema := r.tools[c.name]; {
	case r.enough():
	case r.follows(from, i, functionEnd) && schema.complete(c):
		r.afterFunction(i+1, append(calls[:len(calls):len(calls)], c))
	case r.follows(from, i, callEnd) && schema.complete(c):
		r.afterBlock(i+1, append(calls[:len(calls):len(calls)], c))
	case r.follows(from, i, parameterTag) && schema.knows(r.marks[i].name):
		for n, end := range r.endsOf(i, schema) {
			if n > 0 {
				r.candidates++
			}
			a := readArgument{r.marks[i].name, argumentJSON(end.raw, schema.typesOf(r.marks[i].name)), end.marked}
			longer, ok := c.with(a)
			if !ok {
				continue
			}
			r.members(r.marks[end.next].at, end.next, longer, calls)
		}
	}
}

// with gives the call with one more argument; ok is false where it is there with another value.
func (c readCall) with(a readArgument) (longer readCall, ok bool) {
	for _, before := range c.arguments {
		if before.name == a.name {
			return c, before.value == a.value
		}
	}
	return readCall{c.name, append(c.arguments[:len(c.arguments):len(c.arguments)], a)}, true
}

// afterFunction reads on behind the </function> in front of mark i.
func (r *callReader) afterFunction(i int, calls []readCall) {
	from := r.marks[i-1].end
	switch {
	case r.follows(from, i, callEnd):
		r.afterBlock(i+1, calls)
	case r.follows(from, i, functionTag):
		r.function(i, calls)
	case r.follows(from, i, callTag):
		r.block(i, calls)
	case i == len(r.marks) && (!r.cut || r.is(0, functionTag)):
		r.end(from, calls)
	}
}

// afterBlock reads on behind the </tool_call> in front of mark i.
func (r *callReader) afterBlock(i int, calls []readCall) {
	from := r.marks[i-1].end
	switch {
	case r.follows(from, i, callTag):
		r.block(i, calls)
	case r.follows(from, i, functionTag):
		r.function(i, calls)
	case i == len(r.marks):
		r.end(from, calls)
	}
}

// end keeps a reading whose prose begins at from.
func (r *callReader) end(from int, calls []readCall) {
	reading := callReading{calls, r.text[from:]}
	if r.cut && !blank(reading.prose) {
		return
	}
	for _, other := range r.found {
		if reflect.DeepEqual(other, reading) {
			return
		}
	}
	r.found = append(r.found, reading)
}

// endsOf gives the places where the value of the parameter at mark i can end.
func (r *callReader) endsOf(i int, schema toolSchema) []valueEnd {
	ends, known := r.ends[i]
	if !known {
		ends = r.findEnds(i, schema)
		r.ends[i] = ends
	}
	return ends
}

func (r *callReader) findEnds(i int, schema toolSchema) (ends []valueEnd) {
	name, from := r.marks[i].name, r.marks[i].end
	if schema.typesOf(name)&typeString == 0 {
		if length := jsonLength(r.text[from:]); length >= 0 {
			end := from + length
			j := sort.Search(len(r.marks), func(j int) bool { return r.marks[j].at >= end })
			value := valueEnd{trimmedValue(r.text[from:end]), j + 1, j > i+1}
			if r.closes(j, name) && blank(r.text[end:r.marks[j].at]) {
				if r.goesOn(j, schema) {
					ends = append(ends, value)
				}
				return ends
			}
		}
	}
	if j := i + 1; r.is(j, functionEnd) || r.is(j, parameterTag) && schema.knows(r.marks[j].name) {
		ends = append(ends, valueEnd{trimmedValue(withoutOwnEnd(r.text[from:r.marks[j].at], name)), j, false})
	}
	open := openMarks{of: map[string][]bool{}}
	for j := i + 1; j < len(r.marks) && len(ends) <= mostCandidates; j++ {
		if r.closes(j, name) && !open.swallows() && r.goesOn(j, schema) {
			ends = append(ends, valueEnd{trimmedValue(r.text[from:r.marks[j].at]), j + 1, j > i+1})
		}
		open.pass(r.marks[j], r.beginsLine(from, r.marks[j].at))
	}
	return ends
}

// closes reports whether mark j closes the parameter of the name.
func (r *callReader) closes(j int, name string) bool {
	return r.is(j, parameterEnd) || r.is(j, parameterNamedEnd) && r.marks[j].name == name
}

// goesOn reports whether, behind the end of a value at mark j, the call goes on or ends.
func (r *callReader) goesOn(j int, schema toolSchema) bool {
	from := r.marks[j].end
	return r.follows(from, j+1, functionEnd, callEnd) ||
		r.follows(from, j+1, parameterTag) && schema.knows(r.marks[j+1].name)
}

// beginsLine reports whether a line of the value that begins at from begins at at, but for blanks.
func (r *callReader) beginsLine(from, at int) bool {
	before := strings.TrimRight(r.text[from:at], " \t")
	return before == "" || before[len(before)-1] == '\n'
}

// openMarks are the tags that a value has opened and not closed.
type openMarks struct {
	of    map[string][]bool // by tag; true: it begins a line
	lines int               // of those that begin one
}

func (o *openMarks) pass(m callMark, beginsLine bool) {
	opens := m.opens()
	if opens == "" {
		o.of[m.tag] = append(o.of[m.tag], beginsLine)
		if beginsLine {
			o.lines++
		}
	} else if n := len(o.of[opens]); n > 0 {
		if o.of[opens][n-1] {
			o.lines--
		}
		o.of[opens] = o.of[opens][:n-1]
	}
}

// swallows reports whether one that begins a line is open.
func (o *openMarks) swallows() bool { return o.lines > 0 }

// trimmedValue takes the newlines of the form off a value.
func trimmedValue(raw string) string {
	return strings.TrimSuffix(strings.TrimPrefix(raw, "\n"), "\n")
}

// withoutOwnEnd takes off a value the </NAME> that closed the parameter in the place of </parameter>.
func withoutOwnEnd(raw, name string) string {
	value, found := strings.CutSuffix(strings.TrimRight(raw, whiteSpace), "</"+name+">")
	if !found || strings.Contains(value, "<"+name) {
		return raw
	}
	return value
}

// jsonLength gives the length of the JSON value that s begins with, white space in front included; -1: there is none.
func jsonLength(s string) int {
	d := json.NewDecoder(strings.NewReader(s))
	var value json.RawMessage
	if d.Decode(&value) != nil {
		return -1
	}
	return int(d.InputOffset())
}

package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"slipway/engine/api/turn"
)

// Object reads a JSON object member by member. Its getters check types strictly, take null as absent, and keep the
// first error; Done then refuses the members that were not read.
type Object struct {
	path    string // in the body, "messages[0]"; empty for the body
	members map[string]json.RawMessage
	order   []string
	taken   map[string]bool
	err     *turn.Error
}

// At gives a member's path in the body.
func (o *Object) At(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// Fail refuses a member, unless there is an error already.
func (o *Object) Fail(name, format string, args ...any) {
	if o.err == nil {
		o.err = turn.Invalid(o.At(name), format, args...)
	}
}

// Keep keeps the error of a part of this object; nil is none.
func (o *Object) Keep(err *turn.Error) {
	if o.err == nil {
		o.err = err
	}
}

// Err is the first error so far.
func (o *Object) Err() *turn.Error { return o.err }

// Names gives the members in the order of the body.
func (o *Object) Names() []string { return o.order }

// ReadBody takes a whole body apart, which must be one JSON object.
func ReadBody(raw []byte) (*Object, *turn.Error) {
	if !json.Valid(raw) {
		return nil, malformed(raw)
	}
	return ReadObject("", raw)
}

// ReadObject takes raw apart, which must be JSON (a part of a body that [ReadBody] took). Members alias raw: a body
// may be large, and copies of its parts are all its memory. A member given twice is an error: which one was meant
// is not ours to guess.
func ReadObject(path string, raw []byte) (*Object, *turn.Error) {
	if kind := KindOf(raw); kind != "an object" {
		return nil, turn.Invalid(path, "must be an object, not %s", kind)
	}
	o := &Object{path: path, members: map[string]json.RawMessage{}, taken: map[string]bool{}}
	for rest := inside(raw); len(rest) > 0; {
		var key, value []byte
		key, rest = cutValue(rest)
		value, rest = cutValue(rest)
		var name string
		if err := json.Unmarshal(key, &name); err != nil {
			panic(err) // the body was valid
		}
		if _, twice := o.members[name]; twice {
			return nil, turn.Invalid(o.At(name), "is given twice")
		}
		o.members[name] = value
		o.order = append(o.order, name)
	}
	return o, nil
}

// ReadArray gives the elements of an array, which alias it; it must be JSON.
func ReadArray(raw []byte) []json.RawMessage {
	elements := []json.RawMessage{}
	for rest := inside(raw); len(rest) > 0; {
		var value []byte
		value, rest = cutValue(rest)
		elements = append(elements, value)
	}
	return elements
}

const jsonSpace = " \t\r\n"

// inside gives the text between the brackets of an object or array.
func inside(raw []byte) []byte {
	raw = bytes.Trim(raw, jsonSpace)
	return bytes.Trim(raw[1:len(raw)-1], jsonSpace)
}

// cutValue cuts the value (or key) that s begins with from what follows after the comma or colon. s must be the
// inside of valid JSON.
func cutValue(s []byte) (value, rest []byte) {
	end, depth, quoted := 0, 0, false
scan:
	for ; end < len(s); end++ {
		switch c := s[end]; {
		case quoted && c == '\\':
			end++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case depth == 0 && (c == ',' || c == ':'):
			break scan
		}
	}
	return bytes.TrimRight(s[:end], jsonSpace), bytes.TrimLeft(s[min(end+1, len(s)):], jsonSpace)
}

// malformed says where a body stops to be one JSON value.
func malformed(raw []byte) *turn.Error {
	d := json.NewDecoder(bytes.NewReader(raw))
	var value json.RawMessage
	switch err := d.Decode(&value); {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return turn.Invalid("", "the body is not whole JSON: it ends at byte %d", len(raw))
	case err != nil:
		return turn.Invalid("", "the body is not JSON: %v, near byte %d", err, d.InputOffset())
	}
	return turn.Invalid("", "the body continues after its JSON value, at byte %d", d.InputOffset())
}

// KindOf names a JSON value's type.
func KindOf(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Take gives a member's value and marks it as understood; null and absent give nil.
func (o *Object) Take(name string) json.RawMessage {
	o.taken[name] = true
	raw := o.members[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Peek gives a member's value as it was written, without taking it; nil where it is absent.
func (o *Object) Peek(name string) json.RawMessage { return o.members[name] }

// Has reports whether a member is there and not null, without taking it.
func (o *Object) Has(name string) bool {
	raw, ok := o.members[name]
	return ok && string(raw) != "null"
}

// Text gives a string; given is false where it is absent.
func (o *Object) Text(name string) (value string, given bool) {
	raw := o.Take(name)
	if raw == nil {
		return "", false
	}
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		o.Fail(name, "must be a string, not %s", KindOf(raw))
		return "", false
	}
	return s, true
}

// Boolean gives true or false; given is false where it is absent.
func (o *Object) Boolean(name string) (value, given bool) {
	raw := o.Take(name)
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "":
		return false, false
	}
	o.Fail(name, "must be true or false, not %s", KindOf(raw))
	return false, false
}

// Number gives a number; given is false where it is absent.
func (o *Object) Number(name string) (value float64, given bool) {
	raw := o.Take(name)
	if raw == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if KindOf(raw) != "a number" || err != nil {
		o.Fail(name, "must be a number, not %s", Shown(raw))
		return 0, false
	}
	return v, true
}

// Integer gives a whole number in [low, high]; given is false where it is absent.
func (o *Object) Integer(name string, low, high int64) (value int64, given bool) {
	raw := o.Take(name)
	if raw == nil {
		return 0, false
	}
	whole, fraction, _ := strings.Cut(string(raw), ".")
	if strings.Trim(fraction, "0") != "" {
		whole = string(raw)
	}
	v, err := strconv.ParseInt(whole, 10, 64) // 12.0 is 12
	if err != nil {
		o.Fail(name, "must be a whole number, not %s", Shown(raw))
		return 0, false
	}
	if v < low || v > high {
		o.Fail(name, "is %d; it must be in [%d, %d]", v, low, high)
		return 0, false
	}
	return v, true
}

// Shown gives a number as it was sent, and the kind of everything else.
func Shown(raw []byte) string {
	if kind := KindOf(raw); kind != "a number" || len(raw) > 40 {
		return kind
	}
	return string(raw)
}

// Array gives a member's elements.
func (o *Object) Array(name string) ([]json.RawMessage, bool) {
	raw := o.Take(name)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		o.Fail(name, "must be an array, not %s", KindOf(raw))
		return nil, false
	}
	return ReadArray(raw), true
}

// Raw gives a member that must be an object, as it was written; nil where it is absent.
func (o *Object) Raw(name string) json.RawMessage {
	raw := o.Take(name)
	if raw != nil && raw[0] != '{' {
		o.Fail(name, "must be an object, not %s", KindOf(raw))
		return nil
	}
	return raw
}

// Sub gives a member that must be an object; nil where it is absent or is none.
func (o *Object) Sub(name string) *Object {
	raw := o.Take(name)
	if raw == nil {
		return nil
	}
	sub, err := ReadObject(o.At(name), raw)
	o.Keep(err)
	return sub
}

// Ignore takes members that change nothing.
func (o *Object) Ignore(names ...string) {
	for _, name := range names {
		o.taken[name] = true
	}
}

// Only takes a member whose sole values understood are allowed, written as JSON.
func (o *Object) Only(name, why string, allowed ...string) {
	raw := o.Take(name)
	if raw == nil {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		for _, a := range allowed {
			if compact.String() == a {
				return
			}
		}
	}
	o.Fail(name, "%s; allowed: %s", why, strings.Join(allowed, ", "))
}

// Done gives the first error, or the refusal of the first member that was not taken.
func (o *Object) Done() *turn.Error {
	if o.err != nil {
		return o.err
	}
	for _, name := range o.order {
		if o.taken[name] || string(o.members[name]) == "null" {
			continue
		}
		shownName := name
		if len(shownName) > 100 {
			shownName = shownName[:100] + "…"
		}
		e := turn.Invalid(o.At(shownName), "is not supported by this server and would change the reply, so it is "+
			"not ignored")
		e.Code = "unsupported_parameter"
		return e
	}
	return nil
}

// Element is the path of an array's element.
func Element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// object reads a JSON object member by member. Its getters check types strictly, take null as absent, and keep the first
// error; done then refuses what nobody asked for.
type object struct {
	path    string // where it stands, "messages[0]"; empty for the body
	members map[string]json.RawMessage
	order   []string
	taken   map[string]bool
	err     *Error
}

func (o *object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o *object) fail(name, format string, args ...any) {
	if o.err == nil {
		o.err = invalid(o.at(name), format, args...)
	}
}

// readBody takes a whole body apart, which must be one JSON object.
func readBody(raw []byte) (*object, *Error) {
	if !json.Valid(raw) {
		return nil, malformed(raw)
	}
	return readObject("", raw)
}

// readObject takes raw apart, which must be JSON (a part of a body that [readBody] took). Members alias raw: a body may be
// large, and copies of its parts are all its memory. A member given twice is an error: which one was meant is not ours to
// guess.
func readObject(path string, raw []byte) (*object, *Error) {
	if kind := kindOf(raw); kind != "an object" {
		return nil, invalid(path, "must be an object, not %s", kind)
	}
	o := &object{path: path, members: map[string]json.RawMessage{}, taken: map[string]bool{}}
	for rest := inside(raw); len(rest) > 0; {
		var key, value []byte
		key, rest = cutValue(rest)
		value, rest = cutValue(rest)
		var name string
		if err := json.Unmarshal(key, &name); err != nil {
			panic(err) // the body was valid
		}
		if _, twice := o.members[name]; twice {
			return nil, invalid(o.at(name), "is given twice")
		}
		o.members[name] = value
		o.order = append(o.order, name)
	}
	return o, nil
}

// readArray gives the elements of an array, which alias it; it must be JSON.
func readArray(raw []byte) []json.RawMessage {
	elements := []json.RawMessage{}
	for rest := inside(raw); len(rest) > 0; {
		var value []byte
		value, rest = cutValue(rest)
		elements = append(elements, value)
	}
	return elements
}

const jsonSpace = " \t\r\n"

// inside gives what stands between the brackets of an object or array.
func inside(raw []byte) []byte {
	raw = bytes.Trim(raw, jsonSpace)
	return bytes.Trim(raw[1:len(raw)-1], jsonSpace)
}

// cutValue cuts the value (or key) that s begins with from what follows behind the comma or colon. s must be the inside of
// valid JSON.
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
func malformed(raw []byte) *Error {
	d := json.NewDecoder(bytes.NewReader(raw))
	var value json.RawMessage
	switch err := d.Decode(&value); {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return invalid("", "the body is not whole JSON: it ends at byte %d", len(raw))
	case err != nil:
		return invalid("", "the body is not JSON: %v, near byte %d", err, d.InputOffset())
	}
	return invalid("", "the body goes on after its JSON value, at byte %d", d.InputOffset())
}

// kindOf names a JSON value's type.
func kindOf(raw []byte) string {
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

// take gives a member's value and marks it as understood; null and absent give nil.
func (o *object) take(name string) json.RawMessage {
	o.taken[name] = true
	raw := o.members[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// has reports whether a member is there and not null, without taking it.
func (o *object) has(name string) bool {
	raw, ok := o.members[name]
	return ok && string(raw) != "null"
}

func (o *object) str(name string) (string, bool) {
	raw := o.take(name)
	if raw == nil {
		return "", false
	}
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		o.fail(name, "must be a string, not %s", kindOf(raw))
		return "", false
	}
	return s, true
}

func (o *object) boolean(name string) (value, given bool) {
	raw := o.take(name)
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "":
		return false, false
	}
	o.fail(name, "must be true or false, not %s", kindOf(raw))
	return false, false
}

func (o *object) float(name string) (float64, bool) {
	raw := o.take(name)
	if raw == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if kindOf(raw) != "a number" || err != nil {
		o.fail(name, "must be a number, not %s", shown(raw))
		return 0, false
	}
	return v, true
}

func (o *object) integer(name string, low, high int64) (int64, bool) {
	raw := o.take(name)
	if raw == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		o.fail(name, "must be a whole number, not %s", shown(raw))
		return 0, false
	}
	if v < low || v > high {
		o.fail(name, "is %d; it must be in [%d, %d]", v, low, high)
		return 0, false
	}
	return v, true
}

// shown gives a number as it was sent, and the kind of everything else.
func shown(raw []byte) string {
	if kind := kindOf(raw); kind != "a number" || len(raw) > 40 {
		return kind
	}
	return string(raw)
}

// array gives a member's elements.
func (o *object) array(name string) ([]json.RawMessage, bool) {
	raw := o.take(name)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		o.fail(name, "must be an array, not %s", kindOf(raw))
		return nil, false
	}
	return readArray(raw), true
}

// ignore takes members that change nothing.
func (o *object) ignore(names ...string) {
	for _, name := range names {
		o.taken[name] = true
	}
}

// only takes a member whose sole values understood are allowed, written as JSON.
func (o *object) only(name, why string, allowed ...string) {
	raw := o.take(name)
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
	o.fail(name, "%s; allowed: %s", why, strings.Join(allowed, ", "))
}

// done gives the first error, or the refusal of the first member that was not taken.
func (o *object) done() *Error {
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
		e := invalid(o.at(shownName), "is not supported by this server and would change the reply, so it is not ignored")
		e.Code = "unsupported_parameter"
		return e
	}
	return nil
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

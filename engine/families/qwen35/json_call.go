package qwen35

import (
	"bytes"
	"encoding/json"
)

// jsonMember is one member of an object, its value as it was written.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// jsonMembers gives the members of an object in order; ok is false where text is none.
func jsonMembers(text []byte) (members []jsonMember, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := jsonMember{name: name.(string)}
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		members = append(members, m)
	}
	_, err := d.Token()
	return members, err == nil
}

// readJSONCall reads {"name": NAME, "arguments": {…}} as a call of a given tool. The arguments may be missing, or be a
// string that holds the object; "parameters" is their other name.
func readJSONCall(text string, tools map[string]toolSchema) (call readCall, ok bool) {
	members, ok := jsonMembers([]byte(text))
	if !ok {
		return call, false
	}
	var arguments []byte
	for _, m := range members {
		switch m.name {
		case "name":
			if call.name != "" || json.Unmarshal(m.value, &call.name) != nil {
				return call, false
			}
		case "arguments", "parameters":
			if arguments != nil {
				return call, false
			}
			arguments = m.value
			var inner string
			if json.Unmarshal(m.value, &inner) == nil { // also null, which leaves it empty
				arguments = []byte(inner)
			}
		default:
			return call, false
		}
	}
	schema, given := tools[call.name]
	if !given || call.name == "" {
		return call, false
	}
	if members, ok = nil, true; len(arguments) > 0 {
		members, ok = jsonMembers(arguments)
	}
	for _, m := range members {
		if !ok || !schema.knows(m.name) {
			return call, false
		}
		a := readArgument{name: m.name, value: compactJSON(m.value), marked: len(callMarks(string(m.value))) > 0}
		if types := schema.typesOf(m.name); types&(typeInteger|typeNumber|typeString) == typeInteger {
			if number := argumentJSON(a.value, types); json.Valid([]byte(number)) && number[0] != '"' {
				a.value = number
			}
		}
		if call, ok = call.with(a); !ok {
			return call, false
		}
	}
	return call, ok && schema.complete(call)
}

func compactJSON(value []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		panic("not JSON") // it was decoded
	}
	return out.String()
}

package web

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Members are slices of the body; the standard reader says what they should be.
func TestMembersAreReadAsByTheStandardLibrary(t *testing.T) {
	for _, body := range []string{
		`{}`, ` { } `, `{"a":1}`, "\n{\t\"a\" : 1 ,\r\n\"b\" : [ ] } ",
		`{"a":{"b":[{"c":"}],{"}]},"d":[[1,2],[3]],"e":null}`,
		`{"a\"b":"\\","c:d":"x,y:z","\u0061\\":"\\\"}","":"","é":[" , "]}`,
		`{"a":-1.5e+3,"b":true,"c":"\ud800\"","d":{}}`,
	} {
		o, failure := ReadBody([]byte(body))
		if failure != nil {
			t.Fatalf("%s: %v", body, failure)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		if len(o.members) != len(want) || len(o.order) != len(want) {
			t.Errorf("%s: members %q", body, o.order)
		}
		for name, value := range want {
			got := o.members[name]
			if !bytes.Equal(got, value) {
				t.Errorf("%s: %q is %q, want %q", body, name, got, value)
			}
			var elements []json.RawMessage
			if value[0] == '[' && json.Unmarshal(value, &elements) == nil {
				for i, cut := range ReadArray(got) {
					if len(ReadArray(got)) != len(elements) || !bytes.Equal(cut, elements[i]) {
						t.Errorf("%s: %q: element %d is %q of %q", body, name, i, cut, elements)
					}
				}
			}
		}
	}
}

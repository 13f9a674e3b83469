package structured

import (
	"testing"
)

// bytesVocabulary has a token for each byte, and some of several.
func smallVocabulary(t testing.TB, more ...string) *Vocabulary {
	t.Helper()
	pieces := make([][]byte, 256)
	for b := range pieces {
		pieces[b] = []byte{byte(b)}
	}
	for _, s := range more {
		pieces = append(pieces, []byte(s))
	}
	v, err := NewVocabulary(len(pieces), func(id int32) []byte { return pieces[id] })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValuesOfASchemaAreAccepted(t *testing.T) {
	v := smallVocabulary(t)
	for _, row := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			[]string{`{"a":1}`, `{"a": -12, "b": "x\ny"}`, "{\n  \"a\": 0,\n  \"b\": \"é\"\n}"},
			[]string{`{}`, `{"b":"x"}`, `{"b":"x","a":1}`, `{"a":1,}`, `{"a":01}`, `{"a":1,"a":2}`, `{"a":1.5}`, `{"a":1`}},
		{`{"type":"object"}`, []string{`{}`, `{"x":[1,2,{"y":null}],"z":1e5}`}, []string{`[]`, `{"x":1,"x":2}`, `{x:1}`}},
		{`{"type":"integer","minimum":10,"maximum":25}`, []string{"10", "25", "17"}, []string{"9", "26", "1", "100", "-10"}},
		{`{"type":"number","exclusiveMinimum":0,"maximum":0.5,"multipleOf":0.05}`, []string{"0.05", "0.5", "0.50", "0.45"},
			[]string{"0", "0.01", "0.55", "1"}},
		{`{"type":"string","pattern":"^[a-c]+$","maxLength":3}`, []string{`"a"`, `"abc"`}, []string{`""`, `"abca"`, `"d"`}},
		{`{"enum":["x",1,12,null,{"a":[1]}]}`, []string{`"x"`, "1", "12", "null", `{"a":[1]}`}, []string{"2", "123", `"y"`}},
		{`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2}`, []string{"[true]", "[ true, false ]"},
			[]string{"[]", "[true,true,true]", "[1]"}},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`,
			[]string{`{"v":1,"next":{"v":2,"next":null}}`}, []string{`{"v":1}`}},
		{`{"type":"string","format":"date"}`, []string{`"2026-11-30"`, `"2024-02-29"`}, []string{`"2026-02-30"`, `"x"`}},
		{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"äöü"`, `"\n\n"`}, []string{`"a"`, `"abcd"`}},
	} {
		g, err := Compile(v, []byte(row.schema))
		if err != nil {
			t.Errorf("%s: %v", row.schema, err)
			continue
		}
		for _, s := range row.yes {
			if !g.Accepts(s) {
				t.Errorf("%s refuses %s", row.schema, s)
			}
		}
		for _, s := range row.no {
			if g.Accepts(s) {
				t.Errorf("%s accepts %s", row.schema, s)
			}
		}
	}
}

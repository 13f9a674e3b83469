package strict

import (
	"errors"
	"testing"
)

func TestPlaceOfAFault(t *testing.T) {
	const text = "a = 1\n[t]\nb = 2\n[t.u]\nb = 3 # b of t.u\n[[list]]\nb = 4\n"
	for key, line := range map[string]int{"a": 1, "t.b": 3, "t.u.b": 5, "t.missing": 2, "t.u": 4, "list.b": 7,
		"missing": 0, "no.such": 0} {
		if got := At("f", []byte(text), key, "why"); got.Line != line {
			t.Errorf("%s: line %d, want %d", key, got.Line, line)
		}
	}
}

func TestDecodeNamesFileAndLine(t *testing.T) {
	type doc struct {
		A int `toml:"a"`
		T struct {
			B string `toml:"b"`
		} `toml:"t"`
	}
	for name, row := range map[string]struct {
		text, message string
	}{
		"syntax":         {"a = 1\nb = = 2\n", "f.toml:2: "},
		"unknown key":    {"a = 1\n[t]\nc = 1\n", "f.toml:3: t.c: is not a key of this file"},
		"unknown table":  {"a = 1\n[u]\nc = 1\n", "f.toml:2: u: is not a key of this file"},
		"capital letter": {"A = 1\n", "f.toml:1: A: is not a key of this file (keys are lower case)"},
		"wrong type":     {"[t]\nb = 5\n", "f.toml:2: t.b: incompatible types"},
		"control byte":   {"a = 1\x00\n", "f.toml:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			var d doc
			var fault *Error
			if err := Decode("f.toml", []byte(row.text), &d); !errors.As(err, &fault) {
				t.Fatalf("%v", err)
			}
			if got := fault.Error(); len(got) < len(row.message) || got[:len(row.message)] != row.message {
				t.Errorf("%q, want %q", got, row.message)
			}
		})
	}
	var d doc
	if err := Decode("f.toml", []byte("a = 1\n[t]\nb = \"x\"\n"), &d); err != nil || d.A != 1 || d.T.B != "x" {
		t.Errorf("%+v, %v", d, err)
	}
}

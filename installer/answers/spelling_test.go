package answers

import (
	"encoding/json"
	"testing"
)

// A command in a sentence is one that can be pasted: with the name that this program was started by, and on its home.
func TestCommandsInSentencesNameProgramAndHome(t *testing.T) {
	sp := Spelling{Program: "go run ./cmd/slipway", Home: "/my home"}
	for text, want := range map[string]string{
		"To undo it, run slipway uninstall.":         "To undo it, run go run ./cmd/slipway uninstall --home '/my home'.",
		"`slipway models lock --model x` does it":    "`go run ./cmd/slipway models lock --home '/my home' --model x` does it",
		"slipway down --home /a, then slipway up":    "go run ./cmd/slipway down --home /a, then go run ./cmd/slipway up --home '/my home'",
		"the answers that slipway check kept":        "the answers that go run ./cmd/slipway check kept",
		"See slipway --help.":                        "See go run ./cmd/slipway --help.",
		"slipway: what slipway upholds, slipway up-": "slipway: what slipway upholds, go run ./cmd/slipway up --home '/my home'-",
	} {
		if got := sp.Sentence(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := (Spelling{Program: "slipway"}).Sentence(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Sentences of ours are written anew wherever they are in a document; texts of others, numbers and order stay.
func TestDocumentKeepsWhatOthersWrote(t *testing.T) {
	type part struct {
		Answer string         `json:"answer"`
		Damage []string       `json:"damage"`
		Big    int64          `json:"big"`
		Parts  []part         `json:"parts,omitempty"`
		Named  map[string]any `json:"named,omitempty"`
		Fix    string         `json:"fix"`
	}
	v := part{Answer: "slipway up", Damage: []string{`"a\" slipway up`, "b"}, Big: 9007199254740993,
		Parts: []part{{Fix: "<slipway up", Damage: []string{}}},
		Named: map[string]any{"line": "slipway up", "text": "slipway up", "n": 1.5, "t": true, "z": nil},
		Fix:   "slipway up"}
	before, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := Spelling{Program: "/x/sw"}.Document(Envelope{Data: v, Error: &Error{Message: "slipway up", Details: v}})
	after, err := json.Marshal(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	var was, is part
	if err := json.Unmarshal(before, &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(after, &is); err != nil {
		t.Fatalf("%v\n%s", err, after)
	}
	want := `{"answer":"slipway up","damage":["\"a\\\" /x/sw up","b"],"big":9007199254740993,"parts":[{"answer":"",` +
		`"damage":[],"big":0,"fix":"\u003cslipway up"}],"named":{"line":"/x/sw up","n":1.5,"t":true,"text":"slipway up",` +
		`"z":null},"fix":"/x/sw up"}`
	if string(after) != want {
		t.Errorf("%s\nwant\n%s", after, want)
	}
	if d.Error.Message != "/x/sw up" {
		t.Errorf("%q", d.Error.Message)
	}
	same := Spelling{}.Document(Envelope{Data: v})
	if _, ok := same.Data.(part); !ok {
		t.Errorf("nothing changes, and the data is %T", same.Data)
	}
}

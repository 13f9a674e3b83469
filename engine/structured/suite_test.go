package structured

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/engine/text/pyjson"
)

var update = flag.Bool("update", false, "write what of the JSON Schema test suite is refused or not written")

// The files of the JSON Schema test suite (draft 2020-12, MIT) for the keywords that are taken, formats included.
// Whatever order the members come in, no invalid value is accepted. Which schemas are refused, and which valid values
// are never written, is in suite.txt, which changes only on purpose.
func TestSuiteOfJSONSchema(t *testing.T) {
	v := smallVocabulary(t)
	files, err := filepath.Glob("testdata/suite/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob("testdata/suite/format/*.json")
	files = append(files, more...)
	var notes []string
	valid, invalid := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		if err := json.Unmarshal(raw, &groups); err != nil {
			t.Fatal(file, err)
		}
		name := strings.TrimSuffix(filepath.ToSlash(file[len("testdata/suite/"):]), ".json")
		for _, group := range groups {
			g, err := Compile(v, group.Schema)
			if err != nil {
				if refusal := (*Error)(nil); !errors.As(err, &refusal) {
					t.Errorf("%s: %s: %v is no *Error", name, group.Description, err)
				}
				notes = append(notes, name+": "+group.Description+": "+err.Error())
				continue
			}
			for _, test := range group.Tests {
				data, err := pyjson.Decode(test.Data)
				if err != nil {
					t.Fatal(name, group.Description, test.Description, err)
				}
				accepted := slices.ContainsFunc(writings(data), g.Accepts)
				switch {
				case test.Valid && accepted:
					valid++
				case !test.Valid && accepted:
					t.Errorf("%s: %s: %s: accepted, but invalid: %s", name, group.Description, test.Description,
						test.Data)
				case test.Valid:
					notes = append(notes, name+": "+group.Description+": "+test.Description+": not written")
				default:
					invalid++
				}
			}
		}
	}
	got := strings.Join(notes, "\n") + "\n"
	const golden = "testdata/suite.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; read it after: go test ./engine/structured -run Suite -update", golden)
	}
	if valid < 300 || invalid < 300 {
		t.Errorf("%d valid and %d invalid values were looked at", valid, invalid)
	}
	t.Logf("%d valid values written, %d invalid ones refused, %d schemas or values left out", valid, invalid, len(notes))
}

// writings gives the JSON of a value with its members in every order.
func writings(v any) []string {
	switch v := v.(type) {
	case []any:
		all := []string{""}
		for i, item := range v {
			comma := ","
			if i == 0 {
				comma = ""
			}
			all = joined(all, comma, writings(item))
		}
		return joined([]string{"["}, "", joined(all, "]", []string{""}))
	case *pyjson.Object:
		var all []string
		for _, order := range orders(v.Keys) {
			texts := []string{"{"}
			for i, key := range order {
				comma := ","
				if i == 0 {
					comma = ""
				}
				texts = joined(texts, comma+write(key)+":", writings(v.Values[key]))
			}
			all = append(all, joined(texts, "}", []string{""})...)
		}
		return all
	}
	return []string{write(v)}
}

func joined(firsts []string, between string, seconds []string) (all []string) {
	for _, a := range firsts {
		for _, b := range seconds {
			all = append(all, a+between+b)
		}
	}
	return all
}

func orders(keys []string) [][]string {
	if len(keys) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i := range keys {
		rest := slices.Delete(slices.Clone(keys), i, i+1)
		for _, order := range orders(rest) {
			all = append(all, append([]string{keys[i]}, order...))
		}
	}
	return all
}

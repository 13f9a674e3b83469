package plan

import "testing"

// An editor may begin a file with a byte order mark and end its lines with CR LF: the rules are the same.
func TestRulesOfAWindowsEditorAreTheSameRules(t *testing.T) {
	plain, err := ReadNormalize([]byte("[\n{\"pattern\": \"a\", \"replacement\": \"b\"}\n]\n"))
	if err != nil {
		t.Fatal(err)
	}
	marked, err := ReadNormalize([]byte("\ufeff[\r\n{\"pattern\": \"a\", \"replacement\": \"b\"}\r\n]\r\n"))
	if err != nil || marked != plain {
		t.Errorf("%q %v, want %q", marked, err, plain)
	}
	if _, _, _, err := ReadFile([]byte("\ufeff{}")); err == nil {
		t.Error("a plan file with a mark is taken")
	}
}

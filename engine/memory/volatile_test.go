package memory

import (
	"fmt"
	"strings"
	"testing"
)

func TestChangingValueIsCutOutWholeAndItsShapeNamed(t *testing.T) {
	for _, c := range []struct{ name, before, old, new, wantOld, wantNew, shape string }{
		{"date, first digit of the day differs", "Today is 2026-11-", "29. Be kind.", "30. Be kind.", "2026-11-29.",
			"2026-11-30.", "a date"},
		{"time inside a date and time", "now: 2026-11-29T10:0", "1:07Z end", "2:44Z end", "2026-11-29T10:01:07Z",
			"2026-11-29T10:02:44Z", "a date and time"},
		{"clock", "It is ", "10:15 now", "11:02 now", "10:15", "11:02", "a time of day"},
		{"message id", `"message_id":"`, `msg_8fA31c9d"}`, `msg_77bQe01x"}`, "msg_8fA31c9d", "msg_77bQe01x", "an id"},
		{"UUID", "session ", "0f8fad5b-d9cb-469f-a165-70867728950e\n", "7c9e6679-7425-40de-944b-e07fc1f90ae7\n",
			"0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "a UUID"},
		{"counter", "Turn #", "41 of the day", "42 of the day", "#41", "#42", "a counter"},
		{"prose", "You are a ", "helpful assistant", "careful assistant", "helpful", "careful", ""},
	} {
		change := ChangeAt(c.before, c.old, c.new)
		if change.Old != c.wantOld || change.New != c.wantNew || change.Shape() != c.shape {
			t.Errorf("%s: %q -> %q is %q", c.name, change.Old, change.New, change.Shape())
		}
	}
}

// Tokens part earlier than the text does: " 7" is a blank and a digit, " a" is one token.
func TestChangeShowsTextThatDiffersWhereTokensPartInWhatIsAlike(t *testing.T) {
	for _, c := range []struct{ before, old, new, place, wantOld, wantNew string }{
		{"Request id:", " 745072c6. You", " a6fc4486. You", "Request id: ", "745072c6.", "a6fc4486."},
		{"in 45,", " <|im_end|>\n", "<|im_end|>\n", "in 45,", " <|im_end|>\n", "<|im_end|>\n"},
		{"list: ", "[1]", "{}", "list: ", "[1]", "{}"},
		{"was ", "é", "è", "was ", "é", "è"},
	} {
		if got := ChangeAt(c.before, c.old, c.new); got.Place != c.place || got.Old != c.wantOld ||
			got.New != c.wantNew {
			t.Errorf("%q %q %q: %+v", c.before, c.old, c.new, got)
		}
	}
	var v Volatile
	for i, ids := range [][2]string{{" 11aa", " a1bb"}, {" a1bb", " 2f00"}} {
		change := ChangeAt("Request id:", ids[0]+". You are kind", ids[1]+". You are kind")
		if found := v.Observe(change); found != (i == 1) {
			t.Errorf("change %d: recognised %v", i, found)
		}
	}
}

func TestFreshIDOnEveryTurnIsRecognisedAndAnEditIsNot(t *testing.T) {
	var v Volatile
	for _, question := range []string{"1 apple?", "2 pears, or more?", "3 is odd, yes", "4 is what"} {
		if v.Observe(ChangeAt("<|im_start|>user\n", "0 is nothing", question)) {
			t.Fatal("other questions behind one system prompt taken for volatile text")
		}
	}
	edit := ChangeAt("def answer(): return ", "41\n", "42\n")
	if v.Observe(edit) {
		t.Fatal("one edit taken for volatile text")
	}
	roles := []string{"Coder", "Reviewer", "Tester", "Writer", "Planner"}
	for i := range roles[1:] {
		if v.Observe(ChangeAt("You are ", roles[i]+", and brief.", roles[i+1]+", and brief.")) {
			t.Fatal("a few system prompts that differ in a word taken for volatile text")
		}
	}
	id := func(i int) string { return fmt.Sprintf("id-%08x\nYou are", i*0x9e3779b9) }
	for i := 1; i <= 3; i++ {
		change := ChangeAt("request ", id(i-1), id(i))
		found := v.Observe(change)
		if found != (i >= 2) {
			t.Fatalf("request %d: recognised %v", i, found)
		}
		if found && !strings.Contains(change.Advice(), "an id changes with every request") {
			t.Fatal(change.Advice())
		}
	}
}

package termtext

import (
	"strings"
	"testing"
)

func TestTextOfOthersReachesNoTerminalAsAnEscape(t *testing.T) {
	const hostile = "a\x1b[2Jb\u202ec\u0085d\te\nf\r"
	for name, got := range map[string]string{"Line": Line(hostile), "Text": Text(hostile), "Short": Short(hostile, 100),
		"Name": Name(hostile, 100)} {
		if strings.ContainsAny(got, "\x1b\u202e\u0085\t\r") {
			t.Errorf("%s leaves %q", name, got)
		}
	}
	if got := Line(hostile); got != "a\uFFFD[2Jb\uFFFDc\uFFFDd e f " {
		t.Errorf("Line gives %q", got)
	}
	if got := Text("one\n\ttwo"); got != "one\n two" {
		t.Errorf("Text gives %q", got)
	}
	if IsLine(hostile) || IsLine("a\xff") || !IsLine("Käse 👩‍🚀 中文") {
		t.Error("IsLine disagrees with Line")
	}
}

func TestLongTextIsCutBetweenTwoCharacters(t *testing.T) {
	if got := Short(" "+strings.Repeat("é", 10), 4); got != "é…" {
		t.Errorf("Short gives %q", got)
	}
	if got := Name("éé\u200bé", 3); got != "éé?…" {
		t.Errorf("Name gives %q", got)
	}
}

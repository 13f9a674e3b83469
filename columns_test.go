package slipway_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostColumns = 120
	tabColumns  = 4
	longString  = 60 // a string of more columns may keep its line long in a test: it is data
)

// A line that does not fit a window beside another is not read. Raw strings keep their own lines: they are data.
func TestLinesFit120Columns(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	if len(files) < 300 {
		t.Fatalf("%d files of Go, so this test guards nothing", len(files))
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(source, []byte("// Code generated ")) { // the generator writes its own lines
			continue
		}
		for _, line := range longLines(source, strings.HasSuffix(file, "_test.go")) {
			t.Errorf("%s:%d has more than %d columns", file, line, mostColumns)
		}
	}
}

func TestLongLineIsSeen(t *testing.T) {
	long := "package p\n\nvar a = " + strings.Repeat("1 + ", 30) + "1\n"
	if got := longLines([]byte(long), true); len(got) != 1 || got[0] != 3 {
		t.Errorf("the long lines are %v, want [3]", got)
	}
	if got := longLines([]byte("package p\n\nvar a = `"+strings.Repeat("x", 130)+"`\n"), false); len(got) != 0 {
		t.Errorf("the raw string is refused: %v", got)
	}
}

// longLines are the numbers of the lines that are too long, from 1, without those that a raw string lies in. In a test
// a long string of any form excuses its line.
func longLines(source []byte, test bool) []int {
	excused := linesOfStrings(source, test)
	var long []int
	for i, line := range strings.Split(string(source), "\n") {
		columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
		if columns > mostColumns && !excused[i+1] {
			long = append(long, i+1)
		}
	}
	return long
}

func linesOfStrings(source []byte, test bool) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, func(token.Position, string) {}, scanner.ScanComments)
	lines := map[int]bool{}
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind != token.STRING || text[0] != '`' && !(test && utf8.RuneCountInString(text) > longString) {
			continue
		}
		first := files.Position(at).Line
		for line := first; line <= first+strings.Count(text, "\n"); line++ {
			lines[line] = true
		}
	}
}

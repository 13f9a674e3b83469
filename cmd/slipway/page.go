package main

import (
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"

	"slipway/installer/answers"
	"slipway/termtext"
)

// printable passes words on without control characters, because a path or a name may hold anything, and wraps lines at
// the terminal's width. A line that is a command stays whole: it is there to be copied.
type printable struct {
	to      io.Writer
	columns int    // 0: no terminal, every line stays whole
	program string // how our commands begin
	says    answers.Spelling
}

// page is what words for a person are written to.
func (s *session) page(w io.Writer) printable {
	says := s.spelling()
	return printable{w, s.columnsOf(w), says.Program, says}
}

// spelling is how our commands are written in sentences.
func (s *session) spelling() answers.Spelling {
	says := answers.Spelling{Program: shellWords(s.invocation)}
	for _, given := range s.given {
		if given[0] == "--home" {
			says.Home = given[1]
		}
	}
	return says
}

// columnsOf is the width of the terminal that an output is; 0: it is none. A test says what it is.
func (s *session) columnsOf(w io.Writer) int {
	if s.columns > 0 {
		return s.columns
	}
	if out, ok := w.(*results); ok {
		w = out.to
	}
	return columnsOf(w)
}

// columnsOf is the width of the terminal that a writer is; 0: it is none.
func columnsOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

func (w printable) Write(p []byte) (int, error) {
	lines := strings.Split(w.says.Sentence(termtext.Text(string(p))), "\n")
	for i, line := range lines {
		if !w.isCommand(line) {
			lines[i] = strings.Join(termtext.Wrap(line, w.columns, hang(line)), "\n")
		}
	}
	if _, err := io.WriteString(w.to, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// label begins a line whose next lines hang behind it: "Model:   ", "  1. ", "ok       home       ".
var label = regexp.MustCompile(`^ *([A-Z][A-Za-z]+( [a-z]+)?: +|[0-9]+\. +|[a-z]+ {2,}[a-z-]+ {2,})`)

// hang is where the second line of a long one begins.
func hang(line string) int {
	if found := label.FindString(line); found != "" && len(found) <= 28 {
		return len(found)
	}
	return len(line) - len(strings.TrimLeft(line, " "))
}

// isCommand reports whether a line is a command of ours, alone or behind words and a colon.
func (w printable) isCommand(line string) bool {
	if name, rest, ok := strings.Cut(line, ": "); ok && len(name) <= 20 {
		line = rest
	}
	return w.program != "" && strings.HasPrefix(strings.TrimLeft(line, " "), w.program+" ")
}

package consent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"
	"golang.org/x/text/unicode/norm"

	"slipway/fault"
)

// ErrInterrupted says that the person pressed Ctrl-C at a question.
var ErrInterrupted = fault.New(fault.Fault{Class: fault.Interrupted, Step: fault.NothingDone},
	"stopped at the question")

// signalLimit is how long a no waits for a signal that the same keys may have made: the system delivers the signal of a
// Ctrl-C and the line after it by two ways, and the line can win.
const signalLimit = 100 * time.Millisecond

// Ask puts a yes-or-no question and returns true for y, yes, д or да in any case. Everything else, the empty line and
// the end of input too, is no. Errors: ErrInterrupted, the context's cause.
func (t *Terminal) Ask(ctx context.Context, manner Manner, question string) (bool, error) {
	answer, err := t.line(ctx, manner, question+" [y/N]")
	if errors.Is(err, io.EOF) {
		answer, err = "", nil
	}
	if err != nil {
		return false, err
	}
	if isYes(answer) {
		return true, nil
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(signalLimit):
		return false, nil
	}
}

// line asks and returns what was typed. Errors: ErrInterrupted, the context's cause, io.EOF, the system's.
func (t *Terminal) line(ctx context.Context, manner Manner, question string) (string, error) {
	if manner == Rich && len(t.early) == 0 {
		answer, err := t.drawn(ctx, question)
		if err != errNoReport {
			return answer, err
		}
		fmt.Fprintln(t.Out)
	}
	fmt.Fprintf(t.Out, "%s ", question)
	if t.owed {
		t.awaitReport(ctx)
	}
	return t.readLine(ctx)
}

// drawn lets survey ask. errNoReport: the terminal no longer answers, and what was typed is kept.
func (t *Terminal) drawn(ctx context.Context, question string) (answer string, err error) {
	in := &typed{ctx: ctx, file: t.In}
	defer func() {
		if in.err == errNoReport {
			t.early, t.owed = in.all, true
		}
		if in.err == nil {
			return
		}
		recover() // survey takes the next key for drawing at a place of the cursor that it does not know
		answer, err = "", in.err
	}()
	err = survey.AskOne(&survey.Input{Message: question}, &answer, survey.WithStdio(in, asking{t.Out, in}, t.Out))
	if errors.Is(err, terminal.InterruptErr) {
		err = ErrInterrupted
	}
	return answer, err
}

// isYes reports whether an answer is a yes.
func isYes(answer string) bool {
	switch strings.ToLower(norm.NFC.String(strings.TrimSpace(answer))) {
	case "y", "yes", "д", "да":
		return true
	}
	return false
}

// readLine reads up to the end of a line, of what was typed early first, and takes reports of the cursor out of it. A
// Ctrl-C or Ctrl-D that came while the terminal made no signal and no end of them is among what was typed early.
func (t *Terminal) readLine(ctx context.Context) (string, error) {
	for {
		end := bytes.IndexAny(t.early, "\r\n"+string(rune(ctrlD)))
		if at := bytes.IndexByte(t.early, ctrlC); at >= 0 && (end < 0 || at < end) {
			t.early = nil
			fmt.Fprintln(t.Out)
			return "", ErrInterrupted
		}
		if end >= 0 && t.early[end] == ctrlD { // the line was not finished with Enter: nothing was answered
			t.early = t.early[end+1:]
			return "", io.EOF
		}
		if end >= 0 {
			line := withoutReports(t.early[:end])
			t.early = t.early[end+1:]
			return line, nil
		}
		var buffer [1024]byte
		n, err := readWhile(ctx, int(t.In.Fd()), buffer[:], 0)
		if errors.Is(err, io.EOF) {
			t.early = nil
			return "", io.EOF
		}
		if err != nil {
			return "", err
		}
		t.early = append(t.early, buffer[:n]...)
	}
}

package consent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/AlecAivazis/survey/v2"
	"github.com/AlecAivazis/survey/v2/terminal"
	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"
)

// ErrInterrupted says that the person pressed Ctrl-C at a question.
var ErrInterrupted = errors.New("interrupted at the question")

// Ask puts a yes-or-no question and returns true for y, yes, д or да in any case. Everything else, the empty line and
// the end of input too, is no. Errors: ErrInterrupted, the context's cause.
func (t *Terminal) Ask(ctx context.Context, manner Manner, question string) (bool, error) {
	if manner == Rich && len(t.early) == 0 {
		var answer string
		err := survey.AskOne(&survey.Input{Message: question + " [y/N]"}, &answer,
			survey.WithStdio(t.In, t.Out, t.Out))
		if errors.Is(err, terminal.InterruptErr) {
			return false, ErrInterrupted
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return IsYes(answer), err
	}
	fmt.Fprintf(t.Out, "%s [y/N] ", question)
	line, err := t.readLine(ctx)
	if err != nil {
		return false, err
	}
	return IsYes(line), nil
}

// IsYes tells whether an answer is a yes.
func IsYes(answer string) bool {
	switch strings.ToLower(norm.NFC.String(strings.TrimSpace(answer))) {
	case "y", "yes", "д", "да":
		return true
	}
	return false
}

// readLine reads up to the end of a line, giving up when the context ends.
func (t *Terminal) readLine(ctx context.Context) (string, error) {
	fd := int(t.In.Fd())
	for {
		if end := bytes.IndexAny(t.early, "\r\n"); end >= 0 {
			line := string(t.early[:end])
			t.early = t.early[end+1:]
			return line, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return "", err
		}
		var buffer [1024]byte
		n, err := unix.Read(fd, buffer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			line := string(t.early)
			t.early = nil
			return line, nil
		}
		t.early = append(t.early, buffer[:n]...)
	}
}

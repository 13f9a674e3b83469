package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"slipway/checks/suite"
	"slipway/fault"
	"slipway/installer"
	"slipway/installer/answers"
	"slipway/installer/consent"
	"slipway/installer/operate"
	"slipway/termtext"
)

// Rules of output. Results go to standard output, everything else to standard error. With --json standard output holds
// exactly one document, an answers.Envelope, whatever happens. With --events ndjson standard error holds one JSON
// object a line while a command runs, and nothing else. Text that others wrote is printed without control characters.

// session is one command line being carried out.
type session struct {
	ctx         context.Context
	out         *results
	errOut      io.Writer
	invocation  []string
	json        bool
	events      bool
	verbose     bool
	columns     int // of every output, for tests; 0: those of its terminal
	verb        string
	commands    []*cli.Command
	op          *operate.Operator // of the verb; nil where it needs none
	progress    *progress
	same        []string   // the argv that continues this run; nil: this verb with its flags
	given       [][]string // flags of this command line that the next one must repeat, each with its value
	answered    bool       // the document is out
	endOfFlags  bool       // the command line has a "--": what follows are arguments, whatever they look like
	terminal    *consent.Terminal
	environment installer.Environment

	home       *operate.Operator // looks at the home that the command is about; nil: it is about none
	openBefore *operate.OpenPlan // that was open when the command began
	openTold   bool              // the command that continues the open plan is printed
}

func (s *session) meta(code int) answers.Meta {
	return answers.Meta{Command: s.verb, Version: version, ExitCode: code, Toy: s.op != nil && s.op.Toy(),
		OpenPlan: s.openPlan(code)}
}

// answer prints an answer with the exit code of its class, unless there is an error.
func (s *session) answer(data any, err error, human func(w io.Writer)) error {
	if err != nil {
		return err
	}
	return s.result(int(answers.ClassOf(data)), data, human)
}

// result prints a command's answer: the document, or what human prints. What was found until a signal came is no whole
// answer.
func (s *session) result(code int, data any, human func(w io.Writer)) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.progress.end()
	if s.json {
		s.document(answers.Answered(data, s.meta(code)))
	} else {
		human(s.page(s.out))
	}
	return exitWith(code)
}

// exitStatus ends a command that has given its answer with a code.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit %d", int(e)) }

func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return exitStatus(code)
}

// finish turns what a command returned into words and an exit code. An answer that could not be written is a failure,
// whatever the command itself came to.
func (s *session) finish(err error) int {
	code := s.end(err)
	s.tellOpenPlan(code)
	switch lost := s.out.err; {
	case lost == nil:
		return code
	case errors.Is(lost, syscall.EPIPE): // the reader has seen enough
		return exitPipe
	default:
		f := lostAnswer(lost)
		s.tell(f)
		if code != exitOK {
			return code
		}
		return f.Code
	}
}

func (s *session) end(err error) int {
	if err == nil {
		return exitOK
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	f := explain(s.stopped(err))
	saved := f.Step == fault.Continue || f.Step == fault.Resume && s.continues()
	if saved {
		f.Next = s.sameCommand()
	}
	if f.Step == fault.ReadHelp {
		f.Then = "See " + shellWords(append(append([]string{"slipway"}, strings.Fields(s.verb)...), "--help")) + "."
	}
	s.continueInstead(f)
	if !s.openTold {
		f.Next = s.again(f.Next)
	}
	if saved {
		f.Then, f.Command = savedWords, shellWords(s.argv(f.Next...))
	}
	if s.json && !s.answered {
		s.document(answers.Failed(f, s.argv(f.Next...), s.meta(f.Code)))
		if s.out.err == nil {
			return f.Code
		}
	}
	s.tell(f)
	return f.Code
}

// stopped is the signal where an error is only what the signal caused, else the error.
func (s *session) stopped(err error) error {
	if s.ctx.Err() == nil {
		return err
	}
	if f, _ := fault.Of(err); f.Class.Stopped() || errors.As(err, new(*operate.RolledBackError)) {
		return err
	}
	if unfinished, ok := errors.AsType[*suite.UnfinishedError](err); ok {
		return &suite.UnfinishedError{Err: context.Cause(s.ctx), File: unfinished.File}
	}
	return context.Cause(s.ctx)
}

// sameCommand is this command again, without its flags.
func (s *session) sameCommand() []string {
	if s.same != nil {
		return slices.Clone(s.same)
	}
	return strings.Fields(s.verb)
}

// tell prints a failure on standard error, as an event or in words.
func (s *session) tell(f *failure) {
	s.progress.end()
	if s.events {
		line, err := json.Marshal(map[string]any{"event": "error", "code": codeName(f.Code),
			"text": s.spelling().Sentence(f.Error()), "next": s.argv(f.Next...)})
		if err == nil {
			fmt.Fprintln(s.errOut, string(line))
		}
		return
	}
	w := s.page(s.errOut)
	fmt.Fprintf(w, "slipway: %s\n", f.What)
	if f.Then != "" {
		fmt.Fprintf(w, "%s\n", f.Then)
	}
	switch {
	case f.Command != "":
		fmt.Fprintf(w, "  %s\n", f.Command)
	case len(f.Next) > 0:
		fmt.Fprintf(w, "Next: %s\n", shellWords(s.argv(f.Next...)))
	}
}

// savedWords stand before the command that continues.
const savedWords = "Your progress is saved. To continue, run:"

// continues reports whether the same command goes on where this verb stopped.
func (s *session) continues() bool {
	return slices.Contains([]string{"setup", "apply", "up", "upgrade"}, s.verb)
}

func (s *session) document(e answers.Envelope) {
	s.answered = true
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s.spelling().Document(e)); err != nil && s.out.err == nil {
		panic("slipway: a document that cannot be encoded: " + err.Error())
	}
}

// say prints a line on standard error, unless that is for events.
func (s *session) say(format string, args ...any) {
	if s.events {
		return
	}
	line := termtext.Line(fmt.Sprintf(format, args...))
	if s.progress != nil {
		s.progress.say(line)
		return
	}
	fmt.Fprintln(s.page(s.errOut), line)
}

// argv is a command of ours as a person would start it; none is an empty list.
func (s *session) argv(args ...string) []string {
	if len(args) == 0 {
		return []string{}
	}
	return append(append([]string{}, s.invocation...), args...)
}

// again gives a next step the flags of this command line that it understands too: it must act on the same home, port
// and model.
func (s *session) again(next []string) []string {
	flags := s.flagsOf(next)
	for _, given := range s.given {
		if flags[given[0]] && !slices.Contains(next, given[0]) {
			next = append(next, given...)
		}
	}
	if flags["--model"] && s.op != nil && s.op.Model != "" && !slices.Contains(next, "--model") {
		next = append(next, "--model", s.op.Model)
	}
	return next
}

// flagsOf are the flags of the command that an argv without our name begins with.
func (s *session) flagsOf(next []string) map[string]bool {
	flags, commands := map[string]bool{}, s.commands
	for _, word := range next {
		at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) })
		if at < 0 {
			break
		}
		for _, flag := range commands[at].Flags {
			flags["--"+flag.Names()[0]] = true
		}
		commands = commands[at].Subcommands
	}
	return flags
}

// The words of a command and of a sentence, as everywhere.
var (
	shellWords = termtext.ShellWords
	sentence   = termtext.Sentence
)

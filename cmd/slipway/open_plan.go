package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/installer/answers"
	"slipway/installer/operate"
)

// lookHome notes the home that a command is about, and the plan that is open in it.
func (s *session) lookHome(c *cli.Context) {
	if !slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "home" }) {
		return
	}
	s.home = &operate.Operator{Environment: s.environment, Home: c.String("home")}
	s.openBefore = s.home.OpenPlan()
}

// open is the interrupted plan of the home; nil when there is none. A plan that this command replaced by another is
// named too, unless that was its purpose.
func (s *session) open() *operate.OpenPlan {
	if s.home == nil {
		return nil
	}
	open := s.home.OpenPlan()
	if open == nil && s.openBefore != nil && s.verb != "setup" && s.verb != "apply" && s.home.GivenUp(s.openBefore) {
		return s.openBefore
	}
	return open
}

// openPlan is the open plan for every document.
func (s *session) openPlan(code int) *answers.OpenPlan {
	open := s.open()
	if open == nil || s.verb == "apply" && code == exitOK { // a job may be about to take it up
		return nil
	}
	return &answers.OpenPlan{Digest: open.Digest, Continue: s.argv(open.Words...)}
}

// continueInstead makes the open plan the next step of a failure that would lead to a set-up, or to the same run.
func (s *session) continueInstead(f *failure) {
	open := s.open()
	if open == nil {
		return
	}
	switch {
	case (f.Step == fault.Continue || f.Step == fault.Resume) && s.continues():
	case f.Step == fault.StartJob, slices.Equal(f.Next, []string{"setup"}), slices.Equal(f.Next, []string{"up"}):
		f.Then = "A set-up was interrupted; its progress is saved, and the next command continues it."
	default:
		return
	}
	f.Next, s.openTold = open.Words, true
}

// tellOpenPlan ends a command without a document.
func (s *session) tellOpenPlan(code int) {
	open := s.openPlan(code)
	if open == nil || s.json || s.openTold {
		return
	}
	command := shellWords(open.Continue)
	if !s.events {
		s.say(interruptedWords)
		s.say("  %s", command)
		return
	}
	line, err := json.Marshal(map[string]string{"event": "note", "text": interruptedWords + " " + command})
	if err == nil {
		fmt.Fprintln(s.errOut, string(line))
	}
}

// interruptedWords stand before the command that continues.
const interruptedWords = "A set-up was interrupted; its progress is saved. To continue, run:"

// continueArgs are our arguments that continue this command's run, without the home.
func (s *session) continueArgs() []string {
	words := s.again(s.sameCommand())
	if at := slices.Index(words, "--home"); at >= 0 {
		words = slices.Delete(slices.Clone(words), at, at+2)
	}
	return words
}

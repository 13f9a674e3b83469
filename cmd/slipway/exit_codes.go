package main

import (
	"errors"
	"strings"

	"slipway/fault"
)

// Exit codes, the numbers of package fault's classes. docs/exit-codes.md explains each; a test compares the page.
const (
	exitOK          = int(fault.OK)
	exitInternal    = int(fault.Internal)
	exitUsage       = int(fault.Usage)
	exitNotReady    = int(fault.NotReady)
	exitAuth        = int(fault.Auth)
	exitConsent     = int(fault.Consent)
	exitStale       = int(fault.Stale)
	exitNetwork     = int(fault.Network)
	exitTimeout     = int(fault.Timeout)
	exitHuman       = int(fault.Human)
	exitDamage      = int(fault.Integrity)
	exitNoSpace     = int(fault.NoSpace)
	exitLocked      = int(fault.Locked)
	exitRefused     = int(fault.Refused)
	exitBuild       = int(fault.BuildFailed)
	exitChanges     = int(fault.ChangesPending)
	exitCheckFailed = int(fault.CheckFailed)
	exitHangup      = int(fault.Hangup)
	exitInterrupt   = int(fault.Interrupted)
	exitTerminated  = int(fault.Terminated)
)

func codeName(code int) string { return fault.Class(code).String() }

// failure is a verb's error with its final words. Next is the argv of the next step without this program's name; nil
// when a person must act first.
type failure struct {
	code    int
	what    string // what happened and why, a sentence
	then    string // what next, a sentence
	command string // that ends the sentence: it is printed whole; empty: none
	next    []string
	details any
	step    fault.Step
}

func (f *failure) Error() string {
	return strings.TrimSpace(strings.TrimSpace(f.what+" "+f.then) + " " + f.command)
}

// detailed is an error with facts for the document's details.
type detailed interface{ Details() any }

// explain gives any error its words. Its code is its own: see package fault.
func explain(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if f := explainWithFacts(err); f != nil {
		return f
	}
	of, carrier := fault.Of(err)
	step := steps[of.Step]
	text := carrier.Error()
	if fault.Fixed(carrier) {
		text = err.Error()
	}
	if of.Step == fault.MoveObstacle {
		text = fault.InTheWay(err)
	}
	f := &failure{code: int(of.Class), what: sentence(step.before + text), then: step.then, step: of.Step}
	if step.verbatim {
		f.what = strings.TrimSuffix(step.before+text, ".") + "."
	}
	if step.next != nil {
		f.next = append(append([]string{}, step.next...), of.Args...)
	}
	if d, ok := carrier.(detailed); ok {
		f.details = d.Details()
	}
	return f
}

// Package operate carries out slipway's verbs. Each verb is a method of Operator: an input struct in, an answer struct
// out, errors that carry their class. Nothing here parses a flag, prints, or picks an exit code, so that the terminal,
// --json and other callers are all callers of the same functions.
package operate

import (
	"context"
	"errors"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/plan"
)

// Operator carries out the verbs of one caller on one home.
type Operator struct {
	Environment installer.Environment
	Version     string // of slipway, for receipts
	Home        string // as it was given; empty means the usual one
	Verb        string // for the record of who holds the home's lock
	Caller      Caller
	// Continue gives our arguments, without the home, that continue a run of this verb, for the journal; nil: set-up
	// without flags.
	Continue func() []string

	Model   string      // that the last run settled on; empty before
	planned *plan.Model // of the last plan; nil before
}

// Caller is what a verb needs from its caller. Every function must be set.
type Caller struct {
	// Say gets a sentence while work continues.
	Say func(text string)
	// Report gets progress of a run.
	Report func(apply.Event)
	// ShowPlan gets the plan before consent is asked for.
	ShowPlan func(installer.Prepared)
	// Agree asks the person. It returns NotAsked where nothing can be asked.
	Agree func(ctx context.Context, q Question) (Reply, error)
	// Command is one of our commands, as an argv that a person can start; words are without the program's name.
	Command func(words ...string) []string
}

// Question is what a person is asked to agree to. Exactly one of the pointers is set.
type Question struct {
	Plan    *installer.Prepared
	Removal *apply.Removal // with Path
	Cache   *CacheAnswer
	Path    string // of the home
}

// Reply is the answer to a question.
type Reply int

// The replies. Only Yes allows anything.
const (
	NotAsked Reply = iota
	No
	Yes
)

// ErrDeclined says that the person was asked and did not agree.
var ErrDeclined = fault.New(fault.Fault{Class: fault.Consent, Step: fault.NothingDone}, "The answer was no.")

// ErrNotSetUp says that a home is there and nothing is set up in it.
var ErrNotSetUp = fault.New(fault.Fault{Class: fault.NotReady, Step: fault.SetUp}, "nothing is set up here yet")

// Error is a verb's own error: its text says what happened and why.
type Error struct {
	Text  string
	Of    fault.Fault
	Facts any // for the document's details; nil: none
}

func (e *Error) Error() string { return e.Text }

// Fault: see package fault.
func (e *Error) Fault() fault.Fault { return e.Of }

// Details are the facts behind the text.
func (e *Error) Details() any { return e.Facts }

// PausedError says that a signal stopped a run, which the same command continues.
type PausedError struct{ Err error }

func (e *PausedError) Error() string { return e.Err.Error() }

func (e *PausedError) Unwrap() error { return e.Err }

// Fault keeps the signal's class.
func (e *PausedError) Fault() fault.Fault {
	f, _ := fault.Of(e.Err)
	return fault.Fault{Class: f.Class, Step: fault.Continue}
}

// paused marks an error of a run that a signal stopped.
func paused(err error) error {
	if f, ok := fault.In(err); ok && f.Class.Stopped() {
		return &PausedError{err}
	}
	return err
}

func (o *Operator) resolve() (string, error) {
	return apply.ResolveHome(o.Home, o.Environment.UserHome)
}

func (o *Operator) openHome() (*apply.Home, error) {
	path, err := o.resolve()
	if err != nil {
		return nil, err
	}
	return apply.OpenHome(path, o.Environment.UserHome)
}

// inHome runs f with the open home.
func (o *Operator) inHome(f func(*apply.Home) error) error {
	home, err := o.openHome()
	if err != nil {
		return err
	}
	defer home.Close()
	return f(home)
}

// inUsedHome is inHome for a verb that a home which was never made has nothing for: to set one up is no next step of
// it.
func (o *Operator) inUsedHome(f func(*apply.Home) error) error { return nothingThere(o.inHome(f)) }

// nothingThere is an error of a verb that finds nothing to stop, show or remove.
func nothingThere(err error) error {
	if !errors.Is(err, apply.ErrNoHome) {
		return err
	}
	return &Error{Text: err.Error(), Of: fault.Fault{Class: fault.NotReady, Step: fault.NameHome}}
}

// locked runs f with the home's lock held.
func (o *Operator) locked(home *apply.Home, f func() error) error {
	lock, err := home.Lock("slipway " + o.Verb)
	if err != nil {
		return err
	}
	defer lock.Release()
	return f()
}

// Settings reads what is set up. Errors: apply.ErrNoHome, fs.ErrNotExist where a home is there and nothing is set up,
// *apply.SettingsError.
func (o *Operator) Settings() (set apply.Settings, err error) {
	err = o.inHome(func(home *apply.Home) error {
		set, err = apply.ReadSettings(home)
		return err
	})
	return set, err
}

// Toy reports whether the model is the embedded one, which is no chat model: in the plan that was made, else in what is
// set up.
func (o *Operator) Toy() bool {
	if o.planned != nil {
		return o.planned.Embedded
	}
	set, err := o.Settings()
	return err == nil && set.Decisions.Model.Embedded
}

// neighborhood is the neighbours' side of a home, which need not exist yet.
func (o *Operator) neighborhood() (*neighbor.System, error) {
	path, err := o.resolve()
	if err != nil {
		return nil, err
	}
	system, err := neighbor.New(path, []string{o.Environment.Executable})
	if err != nil {
		return nil, err
	}
	system.Say = o.Caller.Say
	return system, nil
}

// ownChecks writes our own name in the checks' commands as the caller starts it.
func (o *Operator) ownChecks(checks []plan.Check) []plan.Check {
	for i := range checks {
		checks[i].Command = o.ownCommand(checks[i].Command)
	}
	return checks
}

func (o *Operator) ownBlockers(blockers []plan.Blocker) []plan.Blocker {
	for i := range blockers {
		blockers[i].Command = o.ownCommand(blockers[i].Command)
	}
	return blockers
}

func (o *Operator) ownCommand(command []string) []string {
	if len(command) > 1 && command[0] == "slipway" {
		return o.Caller.Command(command[1:]...)
	}
	return command
}

// Addresses are where a server of ours listens.
type Addresses struct {
	API     string `json:"api"`
	Health  string `json:"health"`
	Monitor string `json:"monitor"` // the page; empty without one
}

// addressesOf are the addresses of a server on these loopback ports; monitor 0 is none.
func addressesOf(port, monitor int) *Addresses {
	a := &Addresses{API: launch.URL(port) + "/v1", Health: launch.URL(port) + "/health"}
	if monitor != 0 {
		a.Monitor = launch.URL(monitor) + "/monitor"
	}
	return a
}

// Package fault gives errors their class: the exit code and name that a program ends with, whether trying again makes
// sense, and the kind of next step. An error type says so where it is made, with a method
//
//	func (e *LockedError) Fault() fault.Fault
//
// and a caller asks Of. What the next step is called in a sentence, and which command it is, only the program knows.
package fault

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// Class is a kind of failure. Its number is the exit code; docs/exit-codes.md explains each.
type Class int

// The classes. ChangesPending and CheckFailed also end commands that could answer.
const (
	OK             Class = 0
	Internal       Class = 1
	Usage          Class = 2
	NotReady       Class = 3
	Auth           Class = 4
	Consent        Class = 5
	Stale          Class = 6
	Network        Class = 7
	Timeout        Class = 8
	Human          Class = 9 // a person must do something
	Integrity      Class = 10
	NoSpace        Class = 11
	Locked         Class = 12
	Refused        Class = 13 // a port or a process
	BuildFailed    Class = 14
	ChangesPending Class = 20
	CheckFailed    Class = 21 // a server that was measured or checked is at fault
	Hangup         Class = 129
	Interrupted    Class = 130
	Terminated     Class = 143
)

// Names are the words of the classes in JSON documents.
var Names = map[Class]string{
	OK: "ok", Internal: "internal", Usage: "usage", NotReady: "not-ready", Auth: "auth", Consent: "consent-required",
	Stale: "stale", Network: "network", Timeout: "timeout", Human: "human-action-needed", Integrity: "integrity",
	NoSpace: "no-space", Locked: "locked", Refused: "port-or-process-refused", BuildFailed: "build-failed",
	ChangesPending: "changes-pending", CheckFailed: "check-failed",
	Hangup: "hangup", Interrupted: "interrupted", Terminated: "terminated",
}

func (c Class) String() string { return Names[c] }

// Retryable reports whether the same command may succeed later without a change by a person.
func (c Class) Retryable() bool { return c == Network || c == Timeout || c == Locked }

// Stopped reports whether a signal ended the work.
func (c Class) Stopped() bool { return c == Hangup || c == Interrupted || c == Terminated }

// Fault is what an error says about itself besides its text.
type Fault struct {
	Class Class
	Step  Step     // what can be done about it; empty: nothing beyond the text
	Args  []string // what the step needs to be named, such as a home
}

// carrier is an error that knows its fault.
type carrier interface {
	error
	Fault() Fault
}

// Of finds the fault of the outermost error in the chain that carries one, and that error. Errors of the system and of
// contexts have faults too; everything else is Internal, and the error is err itself.
func Of(err error) (Fault, error) {
	if c, ok := errors.AsType[carrier](err); ok {
		return c.Fault(), c
	}
	return ofSystem(err), err
}

// In is Of for errors that carry a fault only: an error type asks it about the error that it wraps.
func In(err error) (Fault, bool) {
	c, ok := errors.AsType[carrier](err)
	if !ok {
		return Fault{}, false
	}
	return c.Fault(), true
}

func ofSystem(err error) Fault {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Fault{Class: NoSpace, Step: FreeSpace}
	case InTheWay(err) != "":
		return Fault{Class: Stale, Step: MoveObstacle}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return Fault{Class: Human, Step: FixPermissions}
	case errors.Is(err, context.DeadlineExceeded):
		return Fault{Class: Timeout, Step: Repeat}
	}
	return Fault{Class: Internal, Step: RunDoctor}
}

// InTheWay names the path below the home that is a link out of it, a folder, or a file of another kind; "" when the
// error is a different one. Package os has no value for the link: its words are compared, and a script test holds them.
func InTheWay(err error) string {
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return ""
	}
	switch {
	case at.Err.Error() == "path escapes from parent":
		return at.Path + " is or lies behind a link that leads out of the home"
	case errors.Is(at.Err, syscall.EISDIR), errors.Is(at.Err, syscall.ENOTDIR), errors.Is(at.Err, syscall.ELOOP):
		return at.Path + ": " + at.Err.Error()
	}
	return ""
}

// New makes a fixed error that carries a fault; wrap it with %w to add what it is about.
func New(f Fault, text string) error { return &fixed{text, f} }

type fixed struct {
	text  string
	fault Fault
}

func (e *fixed) Error() string { return e.text }
func (e *fixed) Fault() Fault  { return e.fault }

// Fixed reports whether an error was made by New: its text alone does not say what it is about.
func Fixed(err error) bool {
	_, ok := err.(*fixed)
	return ok
}

// Innermost is the text of the last error in the chain: the system's own word for what went wrong, without the path and
// address that the errors around it name.
func Innermost(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

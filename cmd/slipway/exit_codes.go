package main

import (
	"slipway/fault"
	"slipway/installer/answers"
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

// An error's words are those of every caller: see answers.Explain.
type failure = answers.Failure

var explain = answers.Explain

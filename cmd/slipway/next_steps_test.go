package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/store"
)

// The class of an error survives wrapping, and the outermost error that carries one decides.
func TestErrorsKeepTheirClassThroughWrapping(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("unforeseen"), exitInternal},
		{fmt.Errorf("/x: %w", &apply.NoHomeError{Path: "/x"}), exitNotReady},
		{&apply.ActionError{Action: "model", Err: &hub.NetworkError{Err: errors.New("reset")}}, exitNetwork},
		{&apply.ActionError{Action: "model", Err: &hub.NetworkError{Err: &hub.AccessError{Kind: hub.Gated}}}, exitAuth},
		{&hub.AccessError{Kind: hub.NoRepo}, exitStale},
		{&apply.StaleError{Action: "model", Why: "moved", Err: &store.MovedError{}}, exitStale},
		{&apply.StaleError{Action: "neighbors", Err: &neighbor.NotIdleError{}}, exitRefused},
		{&launch.CacheError{Why: "no folder", Refused: true}, exitStale},
		{&launch.CacheError{Why: "crashed"}, exitInternal},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOSPC}, exitNoSpace},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, exitHuman},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}, exitStale},
		{&stopError{fault.Terminated, "SIGTERM"}, exitTerminated},
	} {
		if f := explain(c.err); f.Code != c.code {
			t.Errorf("%T %v: code %d, want %d", c.err, c.err, f.Code, c.code)
		}
	}
	f := explain(&launch.PortError{Port: 8008, Use: launch.PortUse{Home: "/other"}})
	if want := []string{"down", "--home", "/other"}; fmt.Sprint(f.Next) != fmt.Sprint(want) {
		t.Errorf("the next step is %q, want %q", f.Next, want)
	}
}

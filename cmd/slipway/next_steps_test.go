package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"syscall"
	"testing"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/store"
)

// Every step of package fault has words here, and no words belong to a step that is gone.
func TestEveryStepHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../fault/step.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[fault.Step]bool{"": true}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			declared[fault.Step(text)] = true
		}
		return true
	})
	if len(declared) < 20 {
		t.Fatalf("only %d steps found", len(declared))
	}
	for step := range declared {
		if _, ok := steps[step]; !ok {
			t.Errorf("the step %q has no words", step)
		}
	}
	for step := range steps {
		if !declared[step] {
			t.Errorf("the words of %q belong to no step", step)
		}
	}
}

// The class of an error survives wrapping, and the outermost error that carries one decides.
func TestErrorsKeepTheirClassThroughWrapping(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("unforeseen"), exitInternal},
		{fmt.Errorf("/x: %w", apply.ErrNoHome), exitNotReady},
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
		if f := explain(c.err); f.code != c.code {
			t.Errorf("%T %v: code %d, want %d", c.err, c.err, f.code, c.code)
		}
	}
	f := explain(&launch.PortError{Port: 8008, Use: launch.PortUse{Home: "/other"}})
	if want := []string{"down", "--home", "/other"}; fmt.Sprint(f.next) != fmt.Sprint(want) {
		t.Errorf("the next step is %q, want %q", f.next, want)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/plan"
)

func upgradeVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "build the server from the source at hand; the old one stays until the new one answers",
		Flags: []cli.Flag{homeFlag(),
			sourceFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "allow writing in the home, building and launching without a question"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without consent end with exit code 5"},
			eventsFlag()},
		Action: func(c *cli.Context) error { return upgrade(s, c) },
	}
}

// upgrade plans with what is set up and the source at hand, carries that out, and removes the old engine once the new
// one answers. When the new one does not, the old settings come back and the old server runs again.
func upgrade(s *session, c *cli.Context) error {
	if err := s.migrate(c.String("home")); err != nil {
		return err
	}
	ask, err := s.upRequest(c)
	if err != nil {
		return err
	}
	old, err := s.settings(c.String("home"))
	if err != nil {
		return err
	}
	home, err := s.openHome(c.String("home"))
	if err != nil {
		return err
	}
	defer home.Close()
	before, err := launch.Look(s.ctx, home.Root, home.Path)
	if err != nil {
		return err
	}
	ask.KeepEngine, ask.Source, ask.Launch = false, c.String("source"), true
	prepared, err := installer.Prepare(s.ctx, ask, s.place)
	if err != nil {
		return err
	}
	if !prepared.Standing.CanApply {
		return blocked(prepared.Standing)
	}
	if prepared.Standing.PendingCount() == 0 {
		return nothingToDo(s, c, prepared)
	}
	s.showProposal(prepared)
	if err := s.consentTo(c, prepared); err != nil {
		return err
	}
	done, err := s.apply(prepared)
	if err != nil {
		return s.rollBack(c, home, old, before, err)
	}
	if oldID := old.Decisions.Engine.ID; oldID != prepared.Plan.Decisions.Engine.ID {
		if err := apply.RemoveEngine(home, oldID); err != nil {
			return err
		}
	}
	return finishSetup(s, c, prepared, done)
}

// migrate brings the home's layout up to date before anything is read from it.
func (s *session) migrate(path string) error {
	resolved, err := apply.ResolveHome(path, s.place.UserHome)
	if err != nil {
		return err
	}
	done, err := apply.Migrate(resolved, s.place.UserHome)
	for _, what := range done {
		s.talk("%s", what)
	}
	return err
}

// rollBack puts the old settings and, if it was running, the old server back after the new one failed to start.
func (s *session) rollBack(c *cli.Context, home *apply.Home, old apply.Settings, before launch.Status, cause error) error {
	var action *apply.ActionError
	if !errors.As(cause, &action) || action.Action != string(plan.LaunchAction) {
		return s.stopped(cause, append([]string{"upgrade"}, homeArgs(c)...))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Minute)
	defer cancel()
	f := explain(cause)
	lock, err := home.Lock("slipway upgrade")
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := apply.WriteSettings(home, old); err != nil {
		return err
	}
	f.then = "The old engine is still there and is the one that is set up."
	if before.State == launch.Running {
		if _, err := launch.Start(ctx, home.Root, home.Path, before.Record.Settings, false); err != nil {
			f.then = fmt.Sprintf("The old server did not come back either: %v", err)
			return f
		}
		f.then = "The old server runs again."
	}
	return f
}

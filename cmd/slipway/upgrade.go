package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/launch"
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
	in, err := s.upRequest(c)
	if err != nil {
		return err
	}
	old := s.whatServes(c.String("home"))
	in.KeepEngine, in.Source, in.Launch = false, c.String("source"), true
	prepared, err := installer.Prepare(s.ctx, in, s.place)
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
		return s.rollBack(c, prepared, old, err, append([]string{"upgrade"}, homeArgs(c)...))
	}
	if old.settings != nil && old.settings.Decisions.Engine.ID != prepared.Plan.Decisions.Engine.ID {
		if err := s.removeEngine(c.String("home"), old.settings.Decisions.Engine.ID); err != nil {
			return err
		}
	}
	return finishSetup(s, c, prepared, done)
}

func (s *session) removeEngine(path, id string) error {
	home, err := s.openHome(path)
	if err != nil {
		return err
	}
	defer home.Close()
	return apply.RemoveEngine(home, id)
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

// serving is what was set up and ran before a run.
type serving struct {
	settings *apply.Settings // nil: nothing was set up
	record   *launch.Record  // nil: no server ran
}

// whatServes looks before a run that may replace a server. What cannot be learnt was not there.
func (s *session) whatServes(path string) serving {
	var was serving
	home, err := s.openHome(path)
	if err != nil {
		return was
	}
	defer home.Close()
	if set, err := apply.ReadSettings(home); err == nil {
		was.settings = &set
	}
	if status, err := launch.Look(s.ctx, home.Root, home.Path); err == nil && status.State == launch.Running {
		was.record = &status.Record
	}
	return was
}

// rollBack undoes what a run that failed changed of a working set-up: the old settings come back, the plan that failed is
// closed, and the old server runs again if it was replaced by one that did not start. A run that a person stopped stays
// open, because the same command goes on with it; only a server that is gone comes back then. Where nothing was set up
// before, or this run changed nothing, there is nothing to undo.
func (s *session) rollBack(c *cli.Context, p installer.Prepared, old serving, err error, again []string) error {
	cause := s.stopped(err, again)
	if old.settings == nil {
		return cause
	}
	home, openErr := s.openHome(c.String("home"))
	if openErr != nil {
		return cause
	}
	defer home.Close()
	if open, err := apply.OpenDigest(home); err != nil || open != p.Plan.Digest {
		return cause // this run did not begin
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Minute)
	defer cancel()
	status, lookErr := launch.Look(ctx, home.Root, home.Path)
	if lookErr != nil {
		return cause
	}
	now, readErr := apply.ReadSettings(home)
	changed := readErr != nil || !reflect.DeepEqual(now, *old.settings)
	lost := old.record != nil && status.State != launch.Running
	if s.ctx.Err() != nil {
		changed = false
	}
	if !changed && !lost {
		return cause
	}
	lock, lockErr := home.Lock("slipway " + s.verb)
	if lockErr != nil {
		return cause
	}
	defer lock.Release()
	f := explain(cause)
	if err := apply.WriteSettings(home, *old.settings); err != nil {
		f.then = fmt.Sprintf("The old settings could not be written back: %v", err)
		return f
	}
	if s.ctx.Err() == nil {
		if err := apply.GiveUp(home, p.Plan.Digest, apply.Options{Version: version, Now: time.Now}); err != nil {
			f.then = fmt.Sprintf("The old settings are back, and the plan that failed could not be closed: %v", err)
			return f
		}
		if s.verb == "upgrade" && errors.As(err, new(*launch.UnfitError)) {
			f.then, f.next = "Mend the source, then run the same command again.", []string{"status"}
		}
		f.then = "The old settings are back. " + f.then
	}
	switch {
	case lost:
		if _, err := launch.Start(ctx, home.Root, home.Path, old.record.Settings, false); err != nil {
			f.then = fmt.Sprintf("The old settings are back, and the old server did not come back: %v", err)
			f.next = []string{"up"}
			return f
		}
		f.then = "The old server runs again. " + f.then
	case old.record != nil:
		f.then = "The old server runs on. " + f.then
	}
	return f
}

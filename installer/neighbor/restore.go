package neighbor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
	"slipway/termtext"
)

// Pending lists what waits to be restored, and what cannot be read. It changes nothing: for status and doctor.
func (s *System) Pending() ([]Outcome, error) {
	records, damaged := s.folder().List()
	if list := unsafeFolder(damaged); list != nil {
		return list, nil
	}
	holders, err := s.folder().Holders(true)
	if err != nil {
		return nil, err
	}
	list := []Outcome{}
	for _, r := range records {
		starting, _ := s.folder().Held(record.LockName(r.ID))
		w := wordsOf(r)
		switch {
		case r.OwnHome != "" && r.State != record.StateRecorded && !s.noted(r):
			list = append(list, leftAsItIs(r, whyLeft(r)))
		case starting:
			list = append(list, outcome(r, Waiting, "%s %s being %s again.", w.name, w.is, w.started))
		case r.State == record.StateFailed:
			list = append(list, outcome(r, Failed, "%s %s not %s again: %s. Run `slipway restore` to try once more.%s",
				w.name, w.was, w.started, termtext.Name(r.Why, 400), s.restoreNotes(r)))
		case len(holders) > 0:
			list = append(list, outcome(r, Held, "%s %s %s while %s.",
				w.name, w.is, w.stopped, holderWords(holders[0])))
		default:
			list = append(list, outcome(r, Would, "%s %s %s by slipway and %s not %s again yet. Run `slipway "+
				"restore`.%s",
				w.name, w.was, w.stopped, w.is, w.started, s.restoreNotes(r)))
		}
	}
	for _, err := range damaged {
		list = append(list, damagedOutcome(err))
	}
	return list, nil
}

// Restore starts every stopped neighbour again, unless a holder still runs. It is safe to run at the same time as a
// watcher or another Restore: each neighbour starts once. With dryRun it only says what it would do.
func (s *System) Restore(ctx context.Context, dryRun bool) ([]Outcome, error) {
	if dryRun {
		return s.Pending()
	}
	records, damaged := s.folder().List()
	if list := unsafeFolder(damaged); list != nil {
		return list, nil
	}
	list := []Outcome{}
	holders, err := s.folder().Holders(false)
	if err != nil {
		return nil, err
	}
	if len(records) > 0 { // also check, and repair, what the next boot would run
		if err := s.installRestorer(); err != nil {
			s.say("The program that restores after a reboot could not be kept: %s.", errText(err))
		}
		defer s.tidy()
	}
	for _, r := range records {
		if len(holders) > 0 {
			w := wordsOf(r)
			list = append(list, outcome(r, Held, "%s %s still %s while %s; `slipway down` %s again.",
				w.name, w.is, w.stopped, holderWords(holders[0]), w.start))
			continue
		}
		list = append(list, s.restoreOne(ctx, r, nil))
	}
	for _, err := range damaged {
		list = append(list, damagedOutcome(err))
	}
	return list, nil
}

// restoreOne starts one neighbour again and waits until it answers. env is its full environment where a watcher has
// kept it in memory, else nil. Each turn decides from the current state, so that others may work on the same record.
func (s *System) restoreOne(ctx context.Context, r record.Record, env []string) Outcome {
	var attempt *attempt
	defer func() {
		if attempt != nil {
			attempt.release()
		}
	}()
	begun := time.Now()
	for {
		read, err := s.folder().Read(r.ID)
		if errors.Is(err, fs.ErrNotExist) {
			return s.settledByAnother(ctx, r)
		}
		if err != nil {
			return damagedOutcome(err)
		}
		r = read
		w := wordsOf(r)
		now := s.situation(ctx, r, begun)
		s.at("situation")
		switch now.state {
		case runsAgain, neverStopped:
			differs := s.differences(r, now)
			if err := s.forget(r); err != nil {
				return outcome(r, Failed, "%s %s %s again, but the record cannot be removed: %s.",
					w.name, w.is, w.started, errText(err))
			}
			s.at("deleted")
			if now.state == neverStopped {
				return outcome(r, KeptRunning, "%s %s never %s.", w.name, w.was, w.stopped)
			}
			o := outcome(r, Restored, "%s runs again (pid %d).%s", w.name, now.pid, differs)
			if r.Channel == record.ChannelUnload {
				o.Sentence = fmt.Sprintf("%s %s loaded again.", w.name, w.is)
			}
			if attempt != nil {
				o.Log = attempt.log
			}
			return o
		case leftAlone:
			if err := s.forget(r); err != nil {
				return outcome(r, Failed, "The record of %s cannot be removed: %s.", w.name, errText(err))
			}
			return leftAsItIs(r, now.why)
		case portTaken:
			next := "free the port and run"
			if r.Channel == record.ChannelUnload {
				next = "change that and run"
			}
			return outcome(r, PortTaken, "%s %s not %s again: %s. The record is kept; %s `slipway restore`.",
				w.name, w.is, w.started, now.why, next)
		case absent:
			if attempt == nil {
				if s.programChanged(r) {
					return s.changedProgramOutcome(r)
				}
				if attempt, err = s.start(ctx, r, env); err != nil {
					return s.failed(r, errText(err))
				}
				s.at("started")
			}
		}
		if attempt != nil {
			switch ended, why := attempt.ended(); {
			case ended && why == lockHeld: // another process was faster: wait for it
				attempt.release()
				attempt = nil
			case ended && now.state == absent:
				o := s.failed(r, why)
				o.Log = attempt.log
				return o
			}
		}
		if ctx.Err() != nil || time.Since(begun) > s.Timing.Load {
			return outcome(r, Waiting, "%s %s not %s again yet: it %s.", w.name, w.is, w.started, now.why)
		}
		time.Sleep(s.Timing.Poll)
	}
}

// settledByAnother words the restore of a server whose record another slipway, such as its watcher, has just removed.
func (s *System) settledByAnother(ctx context.Context, r record.Record) Outcome {
	w := wordsOf(r)
	switch now := s.situation(ctx, r, time.Time{}); {
	case now.state == runsAgain && r.Channel == record.ChannelUnload:
		return outcome(r, Restored, "%s %s loaded again.", w.name, w.is)
	case now.state == runsAgain:
		return outcome(r, Restored, "%s runs again (pid %d).", w.name, now.pid)
	case now.state == leftAlone:
		return leftAsItIs(r, now.why)
	}
	return outcome(r, Restored, "%s %s %s again by another slipway.", w.name, w.was, w.started)
}

func leftAsItIs(r record.Record, why string) Outcome {
	return outcome(r, LeftAlone, "%s is left as it is: %s.", wordsOf(r).name, why)
}

// holderWords name who needs a server to stay stopped.
func holderWords(holder process.Identity) string {
	if holder.PID == 0 {
		return "another slipway is at work"
	}
	return fmt.Sprintf("slipway runs (pid %d)", holder.PID)
}

func (s *System) failed(r record.Record, why string) Outcome {
	r.State, r.Why, r.At = record.StateFailed, why, time.Now()
	s.folder().Update(r)
	w := wordsOf(r)
	return outcome(r, Failed, "%s %s not %s again: %s. The record is kept; `slipway restore` tries once more.",
		w.name, w.was, w.started, termtext.Name(why, 400))
}

type situationState int

const (
	absent       situationState = iota // nothing of it runs
	runsAgain                          // it answers, with the same model
	neverStopped                       // the recorded process runs and was never asked to end
	inTransit                          // it ends, starts or loads
	portTaken                          // another program has its port
	leftAlone                          // its own slipway has decided, or its home is gone
)

type situation struct {
	state situationState
	pid   int
	why   string
}

// situation looks at what is there now.
func (s *System) situation(ctx context.Context, r record.Record, begun time.Time) situation {
	running, err := r.Identity().Running()
	if err != nil {
		return situation{state: inTransit, why: "cannot be looked at: " + errText(err)}
	}
	if running && r.Channel != record.ChannelUnload {
		return s.oldProcess(ctx, r)
	}
	if r.OwnHome != "" {
		if now, settled := s.homeSituation(ctx, r); settled {
			return now
		}
	}
	found, err := s.serversAt(ctx, r.Port, 0)
	if err != nil {
		return situation{state: inTransit, why: "cannot be looked at: " + errText(err)}
	}
	for _, server := range found {
		if server.Kind != r.Server {
			continue
		}
		k := server.kind
		switch {
		case k.models == nil || sameModels(r.Models, server.loaded):
			return situation{state: runsAgain, pid: server.PID}
		case r.Channel == record.ChannelUnload && anotherModel(r.Models, server.loaded):
			return situation{state: portTaken, pid: server.PID, why: fmt.Sprintf("%s holds another model under "+
				"that name", server.Name())}
		case r.Channel == record.ChannelUnload:
			return situation{state: absent, pid: server.PID, why: "does not hold its model"}
		case len(server.loaded) == 0:
			return situation{state: inTransit, pid: server.PID, why: "answers, and still loads its model"}
		}
		return situation{state: portTaken, pid: server.PID, why: fmt.Sprintf("%s answers there with another model",
			server.Name())}
	}
	if r.Channel == record.ChannelUnload && len(found) == 0 {
		return situation{state: portTaken, why: "its server does not run, and loads models by itself once it does"}
	}
	// The new process may listen before it answers, or not listen yet.
	if s.starting(r, found) {
		return situation{state: inTransit, why: "is starting"}
	}
	if len(found) > 0 {
		// Whoever has the port may be on its way out, such as our own server.
		if time.Since(begun) < s.Timing.Drain {
			return situation{state: inTransit, why: "waits for its port"}
		}
		return situation{state: portTaken, why: fmt.Sprintf("%s has its port", found[0].Name())}
	}
	return situation{state: absent, why: "is not started yet"}
}

// anotherModel reports whether one of the wanted names is the name of another model.
func anotherModel(wanted, loaded []record.Model) bool {
	return slices.ContainsFunc(wanted, func(w record.Model) bool {
		return slices.ContainsFunc(loaded, func(m record.Model) bool { return m.ID == w.ID }) &&
			!sameModels([]record.Model{w}, loaded)
	})
}

// oldProcess: the recorded process itself still runs.
func (s *System) oldProcess(ctx context.Context, r record.Record) situation {
	if r.State == record.StateRecorded {
		return situation{state: neverStopped, pid: r.PID}
	}
	if time.Since(r.At) > s.Timing.Signal {
		found, err := s.serversAt(ctx, r.Port, 0)
		if err == nil && slices.ContainsFunc(found, func(f Server) bool {
			return f.PID == r.PID && f.Kind == r.Server
		}) {
			return situation{state: neverStopped, pid: r.PID}
		}
	}
	return situation{state: inTransit, pid: r.PID, why: "was asked to end and has not ended yet"}
}

// starting reports whether a process that was started for this record, or by the user with the same command, has not
// answered yet: it holds the record's lock, or it has the same arguments.
func (s *System) starting(r record.Record, found []Server) bool {
	if held, err := s.folder().Held(record.LockName(r.ID)); err != nil || held {
		return true
	}
	if r.Channel != record.ChannelArgv {
		return false
	}
	for _, server := range found {
		if slices.Equal(replayArgv(server.details, r.Program), r.Argv) {
			return true
		}
	}
	pids, err := process.PIDs()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		d, err := process.Look(pid)
		if err == nil && d.UID == s.UID && slices.Equal(replayArgv(d, r.Program), r.Argv) {
			return true
		}
	}
	return false
}

func probeOf(r record.Record) netip.Addr {
	a, err := netip.ParseAddr(r.Address)
	if err != nil || !a.IsLoopback() {
		return loopback
	}
	return a
}

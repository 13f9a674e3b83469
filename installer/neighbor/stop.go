package neighbor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// StopOptions say which plan allows a stop, and for which processes.
type StopOptions struct {
	PlanDigest string // the plan that named the servers
	// Holder, where set, also keeps neighbours stopped, as the calling process does.
	Holder process.Identity
	// AcceptLoss lets a server be stopped of which not everything can be kept (Server.Losses).
	AcceptLoss bool
	// RebootAgent lets a file be written to AgentFolder that restores once after a reboot. It is outside
	// slipway's home, so it needs a consent of its own.
	RebootAgent bool
}

// Stop stops the servers one by one, if all of them are idle; if one is not, none is stopped. The records of those that
// are stopped stay on disk until each is restored. Errors: *RefusedError, *LossError, *NotIdleError,
// *StillRunningError,
// *RespawnedError, *StopError; on an error those that were stopped before are restored at once.
//
// The order of the steps makes it safe: hold, record, watcher, last check, mark, signal, exit. Killed at any of them,
// the watcher or the next run restores the neighbour, or finds that it never ended.
func (s *System) Stop(ctx context.Context, servers []Server, opt StopOptions) ([]record.Record, error) {
	for _, server := range servers {
		if !server.Stoppable() {
			return nil, &RefusedError{Server: server, Why: server.Refusal}
		}
		if len(server.Losses) > 0 && !opt.AcceptLoss {
			return nil, &LossError{Server: server}
		}
	}
	proofs, err := s.proveAll(ctx, servers)
	if err != nil {
		return nil, err
	}
	var stopped []record.Record
	for i, server := range servers {
		r, err := s.stopOne(ctx, server, proofs[i], opt)
		if err == nil {
			stopped = append(stopped, r)
			continue
		}
		for _, earlier := range stopped {
			s.restoreOne(context.WithoutCancel(ctx), earlier, nil)
		}
		return nil, err
	}
	return stopped, nil
}

func (s *System) proveAll(ctx context.Context, servers []Server) ([]Idle, error) {
	proofs := make([]Idle, len(servers))
	var all sync.WaitGroup
	for i, server := range servers {
		all.Go(func() { proofs[i] = s.prove(ctx, server, s.Timing, true) })
	}
	all.Wait()
	for i, idle := range proofs {
		if idle.State != StateIdle {
			return nil, &NotIdleError{Server: servers[i], Idle: idle}
		}
	}
	return proofs, nil
}

func (s *System) stopOne(ctx context.Context, server Server, before Idle, opt StopOptions) (record.Record, error) {
	failed := func(step string, err error) (record.Record, error) {
		return record.Record{}, &StopError{Server: server, Step: step, Err: err}
	}
	folder := s.folder()
	self, err := process.Self()
	if err != nil {
		return failed("reading slipway's own identity", err)
	}
	for _, holder := range []process.Identity{self, opt.Holder} {
		if holder.PID > 0 {
			if err := folder.Hold(holder); err != nil {
				return failed("recording the process that needs the stop", err)
			}
		}
	}
	s.at("held")
	r, err := s.newRecord(server, before, opt.PlanDigest)
	if err != nil {
		return failed("reading its program", err)
	}
	if err := folder.Write(r); err != nil {
		return failed("writing the restore record", err)
	}
	s.at("recorded")
	if err := s.installRestorer(); err != nil {
		s.forget(r)
		return failed("keeping a copy of slipway for the restore", err)
	}
	if err := s.startWatcher(r.ID, server.details.Env); err != nil {
		s.forget(r)
		return failed("starting the watcher", err)
	}
	s.at("watched")
	if opt.RebootAgent && s.AgentFolder != "" {
		if err := s.WriteRebootAgent(); err != nil {
			s.forget(r)
			return failed("writing the file that restores after a reboot", err)
		}
	}
	handle, err := process.Open(server.identity)
	if err != nil {
		s.forget(r)
		return record.Record{}, &NotIdleError{
			Server: server, Idle: Idle{State: StateUnknown, Reasons: []string{errText(err)}}}
	}
	defer handle.Close()
	if idle := s.recheck(ctx, server, before.last); idle.State != StateIdle {
		s.forget(r)
		return record.Record{}, &NotIdleError{Server: server, Idle: idle}
	}
	s.at("checked")
	r.State, r.At = record.StateSignalled, time.Now()
	if err := folder.Update(r); err != nil {
		s.forget(r)
		return failed("writing the restore record", err)
	}
	s.at("marked")
	if err := s.noteStopped(r); err != nil {
		s.forget(r)
		return failed("noting in its home who stops it", err)
	}
	server.Idle = before
	s.say("%s", server.StopLine(time.Now()))
	if err := s.ask(ctx, server, r, handle); err != nil {
		return failed("asking it to stop", err)
	}
	s.at("asked")
	if r.Channel == record.ChannelUnload {
		return s.unloaded(ctx, server, r)
	}
	return s.exited(ctx, server, r, handle)
}

// ask takes the channel's way. Whatever happens here, the record says "signalled" already.
func (s *System) ask(ctx context.Context, server Server, r record.Record, handle *process.Handle) error {
	switch r.Channel {
	case record.ChannelUnload:
		l := s.lookAt(ctx, baseURL(server.probe, server.Port), server.Port, server.PID, true)
		for _, m := range r.Models {
			if err := server.kind.unload(l, m); err != nil {
				return err
			}
		}
		return nil
	case record.ChannelLaunchd, record.ChannelBrew, record.ChannelSystemd:
		return s.stopService(ctx, r)
	case record.ChannelApp:
		return stopApp(ctx, r, server.PID)
	}
	err := handle.Signal(server.kind.signal)
	if errors.Is(err, process.ErrGone) {
		return nil // it has just ended by itself
	}
	return err
}

// exited waits for the end of the process and of its listener, and for a successor that should not come.
func (s *System) exited(ctx context.Context, server Server, r record.Record, handle *process.Handle) (record.Record,
	error) {
	wait, cancel := context.WithTimeout(ctx, s.Timing.Exit)
	defer cancel()
	if err := handle.Wait(wait); err != nil {
		if ctx.Err() != nil {
			return record.Record{}, &StopError{Server: server, Step: "waiting for its end", Err: ctx.Err()}
		}
		return record.Record{}, &StillRunningError{Server: server, After: s.Timing.Exit}
	}
	s.at("ended")
	r.State, r.At = record.StateExited, time.Now()
	if err := s.folder().Update(r); err != nil {
		return record.Record{}, &StopError{Server: server, Step: "writing the restore record", Err: err}
	}
	s.at("exited")
	// The process has ended; a child could still hold the port, or a supervisor could start a successor.
	for end := time.Now().Add(s.Timing.Respawn); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(s.Timing.Poll) {
		found, err := s.serversAt(ctx, server.Port, 0)
		if err != nil {
			return record.Record{}, &StopError{Server: server, Step: "looking at its port", Err: err}
		}
		for _, now := range found {
			if now.PID != server.PID && now.Kind == server.Kind {
				s.forget(r) // it runs: nothing is left to restore
				return record.Record{}, &RespawnedError{Server: server, PID: now.PID}
			}
		}
	}
	return r, s.portClosed(ctx, server)
}

// portClosed waits until the server's ports are free: a child may take a moment longer.
func (s *System) portClosed(ctx context.Context, server Server) error {
	for end := time.Now().Add(s.Timing.Exit); ; time.Sleep(s.Timing.Poll) {
		found, err := process.Listeners(ctx, 0)
		found = slices.DeleteFunc(found, func(l process.Listener) bool {
			return !server.Listens(int(l.Address.Port()))
		})
		if err == nil && len(found) == 0 {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			if err == nil {
				err = fmt.Errorf("it ended, and another program listens on port %d now", found[0].Address.Port())
			}
			return &StopError{Server: server, Step: "closing its port", Err: err}
		}
	}
}

// unloaded waits until none of the models is listed any more.
func (s *System) unloaded(ctx context.Context, server Server, r record.Record) (record.Record, error) {
	for end := time.Now().Add(s.Timing.Exit); ; time.Sleep(s.Timing.Poll) {
		l := s.lookAt(ctx, baseURL(server.probe, server.Port), server.Port, server.PID, true)
		loaded, ok := server.kind.models(l)
		if ok && !anyModel(r.Models, loaded) {
			break
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return record.Record{}, &StillRunningError{Server: server, After: s.Timing.Exit}
		}
	}
	r.State, r.At = record.StateExited, time.Now()
	if err := s.folder().Update(r); err != nil {
		return record.Record{}, &StopError{Server: server, Step: "writing the restore record", Err: err}
	}
	s.at("exited")
	return r, nil
}

func anyModel(wanted, loaded []record.Model) bool {
	for _, w := range wanted {
		if sameModels([]record.Model{w}, loaded) {
			return true
		}
	}
	return false
}

func (s *System) newRecord(server Server, idle Idle, digest string) (record.Record, error) {
	d := server.details
	values, names := splitEnvironment(d.Env)
	r := record.Record{
		Schema: record.Schema, ID: recordID(server), Server: server.Kind, Title: server.Title, Channel: server.Channel,
		PID: d.PID, StartUS: d.StartUS, BootID: d.BootID, Exe: d.Exe, ExeInode: d.ExeInode,
		Cwd: d.Cwd, CwdNeeded: folderNeeded(d, server.kind), Env: values, EnvNames: names,
		Address: server.probe.String(), Port: server.Port, Ports: server.Ports, Models: server.loaded,
		Evidence:   record.Evidence{Samples: idle.Samples, SpanS: idle.SpanS, IdleSeconds: idle.IdleSeconds},
		PlanDigest: digest, State: record.StateRecorded, At: time.Now(),
	}
	switch server.Channel {
	case record.ChannelArgv:
		program, _ := replay(d)
		r.Program, r.Argv = program, replayArgv(d, program)
		sum, err := record.SumOf(program)
		if err != nil {
			return r, err
		}
		r.ProgramSHA256 = sum.String()
		r.OwnHome = server.Home
		if r.Cwd == "" { // gone already, not needed, and accepted
			r.Cwd, r.CwdGone = s.UserHome, true
		}
	case record.ChannelLaunchd, record.ChannelBrew:
		r.Label, r.Plist = server.Starter.Name, server.Starter.Plist
	case record.ChannelSystemd:
		r.Unit = server.Starter.Name
	case record.ChannelApp:
		r.Bundle, r.Socket = server.Starter.Name, s.UserHome+"/"+server.kind.socket
	}
	return r, nil
}

func recordID(server Server) string {
	kind := strings.ReplaceAll(server.Kind, ".", "_")
	return fmt.Sprintf("%s-%d-%d-%d", kind, server.Port, server.PID, server.identity.StartUS)
}

package neighbor

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"slipway/installer/process"
	"slipway/termtext"
)

// CPU time per second of wall clock below which a server counts as doing nothing, and below which nothing moves:
// an idle uvicorn uses under 1 % of a core for its timers, a working server several hundred times that. The allowance
// covers answering our own questions in short spans.
const (
	idleCPUShare   = 0.05
	stuckCPU       = 0.01
	probeAllowance = 50 * time.Millisecond
)

// ProveIdle takes timing.Samples samples over timing.Span and judges them together. It only looks: the kinds' own tools
// are not run. A server of which nothing is known is unknown.
func (s *System) ProveIdle(ctx context.Context, server Server, timing Timing) Idle {
	return s.prove(ctx, server, timing, false)
}

func (s *System) prove(ctx context.Context, server Server, timing Timing, stopping bool) Idle {
	if server.kind == nil || server.kind.idle == nil {
		reason := server.Refusal
		if reason == "" {
			reason = "slipway does not know how to ask it"
		}
		return Idle{State: StateUnknown, Reasons: []string{reason}}
	}
	var samples []sample
	pause := timing.Span / time.Duration(max(timing.Samples-1, 1))
	for i := range max(timing.Samples, 1) {
		if i > 0 {
			select {
			case <-ctx.Done():
				return Idle{State: StateUnknown, Reasons: []string{"interrupted"}}
			case <-time.After(pause):
			}
		}
		samples = append(samples, s.sample(ctx, server, stopping))
	}
	idle := judge(samples)
	if span := time.Duration(idle.SpanS * float64(time.Second)); idle.Wedged && span < timing.Wedged {
		// Too early to say: a step of the GPU may take that long. One more look, later.
		select {
		case <-ctx.Done():
		case <-time.After(timing.Wedged - span):
			samples = append(samples, s.sample(ctx, server, stopping))
			idle = judge(samples)
		}
	}
	return idle
}

// sample looks once: who it is, what it says, who is connected, how much CPU time it has used.
func (s *System) sample(ctx context.Context, server Server, stopping bool) sample {
	now := sample{at: time.Now(), counters: map[string]float64{}}
	if running, err := server.identity.Running(); err != nil || !running {
		now.isUnknown("its process is not the same any more")
		return now
	}
	l := s.lookAt(ctx, baseURL(server.probe, server.Port), server.Port, server.PID, stopping)
	if !server.kind.answers(l) {
		silent := true
		for path, r := range l.replies {
			silent = silent && r.silent
			if r.status == 503 && path == "/health" {
				now.isBusy("it is loading or ending")
			}
		}
		if silent {
			now.isUnknown("it did not answer in time: it may be working")
		} else {
			now.isUnknown("it did not answer like %s", server.kind.title)
		}
	} else {
		server.kind.idle(l, &now)
	}
	if server.kind.exactSockets {
		s.countSockets(ctx, server.PID, &now)
	}
	now.clients = s.clients(ctx, server, &now)
	now.cpu, now.cpuKnown = treeCPU(server.PID)
	return now
}

// countSockets is the test of a kind that holds a socket exactly while it works. Our own question has just been
// answered and closed; its socket goes within milliseconds.
func (s *System) countSockets(ctx context.Context, pid int, t *sample) {
	for try := 0; ; try++ {
		open, err := process.OpenSockets(ctx, pid)
		switch {
		case err != nil:
			t.isUnknown("its sockets cannot be read: %s", errText(err))
			return
		case open == 0:
			return
		case try == 5:
			t.isBusy("it holds %d sockets besides its listener", open)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// clients names all other programs with a connection to the port. Connections of the application that owns the server
// are its own; ours are known by their port.
func (s *System) clients(ctx context.Context, server Server, t *sample) []string {
	var names []string
	for try := 0; ; try++ {
		connections, err := process.Connections(ctx, server.Port)
		if err != nil {
			t.isUnknown("its connections cannot be read: %s", errText(err))
			return nil
		}
		var leaving bool
		names, leaving = s.foreignClients(server, connections)
		// A connection whose client has just ended stays for some milliseconds; that of an abandoned request stays.
		if !leaving || try == 5 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(names) > 0 {
		t.isBusy("connected: %s", names[0])
		if len(names) > 1 {
			t.isBusy("and %d more", len(names)-1)
		}
	}
	return names
}

// foreignClients names who is connected. leaving: all of them are on this machine and their process has ended.
func (s *System) foreignClients(server Server, connections []process.Connection) (names []string, leaving bool) {
	for _, c := range connections {
		if len(c.PIDs) > 0 && !slices.Contains(c.PIDs, server.PID) && !s.descendant(c.PIDs, server.PID) {
			continue // another server's, bound to another address of the same port
		}
		if s.ours.has(c.Remote.Port()) || s.ownApp(server, c.ClientPIDs) {
			continue
		}
		name, gone := "a client at "+c.Remote.Addr().String(), c.Remote.Addr().IsLoopback()
		if len(c.ClientPIDs) > 0 {
			name, gone = fmt.Sprintf("pid %d", c.ClientPIDs[0]), false
			if id, err := process.Observe(c.ClientPIDs[0]); err == nil && id.Exe != "" {
				name = fmt.Sprintf("%s (pid %d)", quoted(filepath.Base(id.Exe)), id.PID)
			}
		}
		leaving = gone && (leaving || len(names) == 0)
		if name += ", " + c.State; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, leaving
}

func (s *System) descendant(pids []int, ancestor int) bool {
	pid, ok := process.Owner(process.Listener{PIDs: append([]int{ancestor}, pids...)})
	return ok && pid == ancestor
}

// ownApp reports whether the client is the server itself, or part of the application that the server belongs to.
func (s *System) ownApp(server Server, pids []int) bool {
	for _, pid := range pids {
		if pid == server.PID {
			return true
		}
		id, err := process.Observe(pid)
		if err != nil {
			continue
		}
		bundle := bundleOf(id.Exe)
		if bundle != "" && (bundle == bundleOf(server.Exe) || server.Starter.Type == "app" &&
			bundle == server.Starter.Name) {
			return true
		}
	}
	return false
}

// treeCPU sums the CPU time of a process and its descendants: Ollama computes in its runners.
func treeCPU(pid int) (time.Duration, bool) {
	total, err := process.CPUTime(pid)
	if err != nil {
		return 0, false
	}
	children, err := process.Children(pid)
	if err != nil {
		return 0, false
	}
	for _, child := range children {
		if used, ok := treeCPU(child); ok {
			total += used
		}
	}
	return total, true
}

// judge makes one answer of all samples. One busy sample makes it busy, one unknown makes it unknown; then what changed
// between the samples counts, even against what the server says.
func judge(samples []sample) Idle {
	first, last := samples[0], samples[len(samples)-1]
	span := last.at.Sub(first.at)
	idle := Idle{State: StateIdle, Samples: len(samples), SpanS: span.Seconds(), IdleSeconds: last.idleSeconds,
		last: last}
	var busy, unknown []string
	allBusy := true
	for _, one := range samples {
		busy = append(busy, one.busy...)
		unknown = append(unknown, one.unknown...)
		idle.Clients = append(idle.Clients, one.clients...)
		allBusy = allBusy && len(one.busy) > 0
	}
	moved := false
	for i := 1; i < len(samples); i++ {
		if why := movement(samples[i-1], samples[i]); why != "" {
			moved = true
			busy = append(busy, why)
		}
	}
	used, known := last.cpu-first.cpu, first.cpuKnown && last.cpuKnown
	switch {
	case len(samples) < 2:
	case !known:
		unknown = append(unknown, "its CPU time cannot be read")
	case used > allowed(span, idleCPUShare):
		busy = append(busy, fmt.Sprintf("it used %d ms of CPU time in %.1f s", used.Milliseconds(), span.Seconds()))
	}
	slices.Sort(idle.Clients)
	idle.Clients = slices.Compact(idle.Clients)
	switch {
	case len(busy) > 0:
		idle.State, idle.Reasons = StateBusy, unique(busy)
		idle.Wedged = allBusy && !moved && len(samples) > 1 && known && used <= allowed(span, stuckCPU) &&
			len(idle.Clients) == 0
	case len(unknown) > 0:
		idle.State, idle.Reasons = StateUnknown, unique(unknown)
	}
	return idle
}

func allowed(span time.Duration, share float64) time.Duration {
	return time.Duration(float64(span)*share) + probeAllowance
}

// movement says which counter differs between two samples.
func movement(before, after sample) string {
	for _, name := range slices.Sorted(maps.Keys(before.counters)) {
		if now, ok := after.counters[name]; ok && now != before.counters[name] {
			return fmt.Sprintf("%s moved from %v to %v", name, before.counters[name], now)
		}
	}
	return ""
}

func unique(list []string) []string {
	var out []string
	for _, item := range list {
		if !slices.Contains(out, item) {
			out = append(out, termtext.Name(item, 200))
		}
	}
	return out
}

// recheck is the last look before the signal: one more sample, compared with the last of the proof.
func (s *System) recheck(ctx context.Context, server Server, before sample) Idle {
	now := s.sample(ctx, server, true)
	return judge([]sample{before, now})
}

// ProveIdleToStop is ProveIdle for a server that a person has named to be stopped: where only a kind's own tool knows,
// that tool is run, if the server has just answered.
func (s *System) ProveIdleToStop(ctx context.Context, server Server, timing Timing) Idle {
	return s.prove(ctx, server, timing, true)
}

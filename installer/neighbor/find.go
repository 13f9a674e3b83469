package neighbor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway/installer/launch"
	"slipway/installer/process"
	"slipway/termtext"
)

// New is the System of this machine. home is slipway's home, program how to run slipway again.
func New(home string, program []string) (*System, error) {
	userHome, err := os.UserHomeDir()
	if err != nil {
		userHome = "/" // a service manager, a bare container: files in the user's home are not found then
	}
	s := &System{Home: home, UserHome: userHome, UID: os.Getuid(), Program: program, Timing: DefaultTiming}
	if runtime.GOOS == "darwin" {
		s.Launchctl = "/bin/launchctl"
		if userHome != "/" {
			s.AgentFolder = userHome + "/Library/LaunchAgents"
		}
	} else {
		for _, path := range []string{"/usr/bin/systemctl", "/bin/systemctl"} {
			if found, err := exec.LookPath(path); err == nil {
				s.Systemctl = found
				break
			}
		}
	}
	return s, nil
}

func (s *System) lookAt(ctx context.Context, base string, port, pid int, stopping bool) *look {
	if s.ours.ports == nil {
		s.ours.mu.Lock()
		if s.ours.ports == nil {
			s.ours.ports = map[uint16]bool{}
		}
		s.ours.mu.Unlock()
	}
	l := &look{ctx: ctx, base: base, port: port, pid: pid, timeout: s.Timing.Request, replies: map[string]reply{},
		stopping: stopping, ours: &s.ours}
	if stopping {
		l.foreign = tools{lms: lmsIn(s.UserHome)}
	}
	return l
}

// Find looks at the kinds' default ports, at ExtraPorts, and at every other listener whose program is a known kind.
// It asks over HTTP on loopback and reads the process table; it runs no foreign program. Our own processes (own, such
// as the server of this home) are left out. Idle is one sample of evidence only after ProveIdle; here it is unknown.
func (s *System) Find(ctx context.Context, own ...process.Identity) ([]Server, error) {
	all, err := process.Listeners(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("which programs listen cannot be read: %w", err)
	}
	wanted := map[int]bool{}
	for _, k := range kinds {
		for _, p := range k.ports {
			wanted[p] = true
		}
	}
	for _, p := range s.ExtraPorts {
		wanted[p] = true
	}
	var ports []int
	for _, l := range all {
		port := int(l.Address.Port())
		if slices.Contains(ports, port) {
			continue
		}
		if !wanted[port] {
			pid, ok := process.Owner(l)
			if !ok {
				continue
			}
			d, err := process.Look(pid)
			if err != nil || len(kindsRunning(d)) == 0 {
				continue
			}
		}
		ports = append(ports, port)
	}
	slices.Sort(ports)
	var servers []Server
	for _, port := range ports {
		found, err := s.completeAt(ctx, port, all)
		if err != nil {
			return nil, err
		}
		for _, server := range found {
			if !slices.ContainsFunc(own, server.identity.SameProcess) && !slices.ContainsFunc(servers, server.same) {
				servers = append(servers, server)
			}
		}
	}
	return servers, nil
}

// At identifies what listens on a port: usually nothing or one server, more where different programs are bound to
// different addresses. A listener that answers nothing is asked again for Timing.Drain before it is called unknown.
func (s *System) At(ctx context.Context, port int) ([]Server, error) {
	all, err := process.Listeners(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("which programs listen cannot be read: %w", err)
	}
	return s.completeAt(ctx, port, all)
}

// completeAt is serversAt, with each server complete.
func (s *System) completeAt(ctx context.Context, port int, all []process.Listener) ([]Server, error) {
	found, err := s.serversAt(ctx, port, s.Timing.Drain)
	if err != nil {
		return nil, err
	}
	var servers []Server
	for _, server := range found {
		if server = s.complete(ctx, server, all); !slices.ContainsFunc(servers, server.same) {
			servers = append(servers, server)
		}
	}
	return servers, nil
}

func (s *System) serversAt(ctx context.Context, port int, drain time.Duration) ([]Server, error) {
	listeners, err := process.Listeners(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("who listens on port %d cannot be read: %w", port, err)
	}
	if len(listeners) == 0 {
		taken, err := process.Listened(ctx, port)
		if err != nil || !taken {
			return nil, err
		}
		// The port is taken and no owner shows: unknown, never free.
		listeners = []process.Listener{{Address: netip.AddrPortFrom(loopback, uint16(port)), UID: -1}}
	}
	var servers []Server
	for _, l := range merge(listeners) {
		server, err := s.identify(ctx, l, drain)
		if errors.Is(err, process.ErrGone) {
			continue // it ended while we looked
		}
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// merge takes the sockets that the same processes hold (one for IPv4 and one for IPv6) together, IPv4 loopback first.
func merge(listeners []process.Listener) []process.Listener {
	var list []process.Listener
	for _, l := range listeners {
		i := slices.IndexFunc(list, func(o process.Listener) bool { return slices.Equal(o.PIDs, l.PIDs) })
		switch {
		case i < 0:
			list = append(list, l)
		case !probable(list[i].Address.Addr()).Is4() && probable(l.Address.Addr()).Is4():
			list[i] = l
		}
	}
	return list
}

// probable is the loopback address at which a listener can be asked; the zero Addr where only another address would do,
// since nothing is asked beyond loopback.
func probable(bound netip.Addr) netip.Addr {
	switch {
	case bound.IsLoopback():
		return bound
	case bound.IsUnspecified() && bound.Is4():
		return loopback
	case bound.IsUnspecified():
		return netip.IPv6Loopback()
	}
	return netip.Addr{}
}

func kindsRunning(d process.Details) []*kind {
	c := commandOf(d)
	var list []*kind
	for _, k := range kinds {
		if k.runs(c) {
			list = append(list, k)
		}
	}
	return list
}

// identify compares program and answers. Only where both name the same kind does the server get it.
func (s *System) identify(ctx context.Context, l process.Listener, drain time.Duration) (Server, error) {
	port := int(l.Address.Port())
	server := Server{Kind: "unknown", Title: "an unknown program", Address: l.Address.String(), Port: port, UID: l.UID,
		probe: probable(l.Address.Addr()), Idle: Idle{State: StateUnknown, Reasons: []string{"not looked at yet"}}}
	pid, ok := process.Owner(l)
	if !ok {
		server.Refusal = "the system does not show who owns it"
		if len(l.PIDs) > 1 {
			server.Refusal = "several unrelated programs hold the port"
		}
		return server, nil
	}
	d, err := process.Look(pid)
	if err != nil {
		return server, err
	}
	server.PID, server.Exe, server.Arguments = pid, termtext.Line(d.Exe), max(len(d.Argv)-1, 0)
	if !d.Started.IsZero() {
		server.Started = d.Started.UTC().Format(time.RFC3339)
	}
	server.identity, server.details = d.Identity, d
	if d.UID >= 0 {
		server.UID = d.UID
	}
	server.Starter = s.starterOf(ctx, d)
	if bytes, err := process.FootprintBytes(pid); err == nil {
		server.FootprintBytes = bytes
	}
	running := kindsRunning(d)
	if len(running) > 0 { // until its answers say otherwise, this is only its name
		server.Title = running[0].title
	}
	if !server.probe.IsValid() {
		server.Refusal = "it listens beyond loopback only, and slipway asks only loopback addresses"
		return server, nil
	}
	s.compare(ctx, &server, running, drain)
	if server.kind != nil {
		s.decideChannel(ctx, &server)
	} else if server.Refusal == "" {
		server.Refusal = "slipway does not know this program"
	}
	return server, nil
}

// compare asks over HTTP whether the server is what its program looks like.
func (s *System) compare(ctx context.Context, server *Server, running []*kind, drain time.Duration) {
	base := baseURL(server.probe, server.Port)
	for end := time.Now().Add(drain); ; {
		l := s.lookAt(ctx, base, server.Port, server.PID, false)
		match, answered, protected := recognise(l, running)
		switch {
		case match != nil && !slices.Contains(running, match):
			server.Title = "an unknown program"
			server.Refusal = fmt.Sprintf("it answers like %s, but its program is another one", match.title)
			return
		case match != nil:
			server.Kind, server.Title, server.kind = match.id, match.title, match
			if match.claims != nil {
				if claimed, ok := match.claims(l); !ok || claimed != server.PID {
					server.Refusal = fmt.Sprintf("it says that its process is %d, but %d listens: one of them is a "+
						"supervisor", claimed, server.PID)
				}
			}
			if match.models != nil {
				server.loaded, _ = match.models(l)
				server.Models = ModelIDs(server.loaded)
			}
			if match.refuse != nil && server.Refusal == "" {
				server.Refusal = match.refuse(l, commandOf(server.details))
			}
			return
		case protected:
			server.Protected = true
			server.Refusal = "it wants a key, so slipway cannot see whether it works"
			return
		case answered:
			if len(running) > 0 {
				server.Refusal = fmt.Sprintf("its program looks like %s, but it does not answer like one", server.Title)
			}
			return
		}
		if !time.Now().Before(end) || ctx.Err() != nil {
			server.Refusal = "it does not answer: it may be working, loading or ending"
			return
		}
		time.Sleep(min(s.Timing.Poll, 250*time.Millisecond))
	}
}

// recognise asks the kinds that the program allows first, then all others, so that a mismatch gets its name.
func recognise(l *look, running []*kind) (match *kind, answered, protected bool) {
	for _, group := range [][]*kind{running, kinds} {
		for _, k := range group {
			if k.answers != nil && k.answers(l) {
				return k, true, false
			}
		}
		silent := len(l.replies) > 0
		for _, r := range l.replies {
			protected = protected || r.protected()
			silent = silent && r.status == 0
		}
		if protected || silent {
			return nil, !silent, protected // more questions would get the same answer
		}
	}
	return nil, true, false
}

// decideChannel says how the server would be stopped and brought back, or why slipway would not.
func (s *System) decideChannel(ctx context.Context, server *Server) {
	if server.Refusal != "" {
		return
	}
	k := server.kind
	if server.UID != s.UID {
		server.Refusal = "it belongs to another user"
		return
	}
	if k == &slipwayServer {
		server.Home = launch.HomeOf(server.identity)
	}
	server.Channel, server.Refusal = s.capture(server)
	if server.Refusal == "" && k.unload == nil && k.signal == 0 {
		server.Channel, server.Refusal = "", "slipway knows no gentle way to stop it"
	}
	server.Losses, server.Missing = s.losses(server)
}

// errText is an error on one line, fit to print.
func errText(err error) string { return strings.TrimSpace(termtext.Name(err.Error(), 400)) }

// Quick is the same system for a quick look: a listener that does not answer is not waited for.
func (s *System) Quick() *System {
	q := &System{Home: s.Home, UserHome: s.UserHome, UID: s.UID, Program: s.Program, Launchctl: s.Launchctl,
		Systemctl:   s.Systemctl,
		AgentFolder: s.AgentFolder, ExtraPorts: s.ExtraPorts, Timing: s.Timing}
	q.Timing.Drain = 0
	return q
}

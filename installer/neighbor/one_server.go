package neighbor

import (
	"context"
	"slices"

	"slipway/installer/process"
)

// same reports whether both are one process: a server is one server, however many ports it has.
func (s Server) same(other Server) bool { return s.PID > 0 && s.identity.SameProcess(other.identity) }

// complete finds what belongs to the same server as the process that has a port: the outermost parent that is a server
// too (a router, Ollama), the port at which that answers as its kind, all other ports, and the memory of its children.
func (s *System) complete(ctx context.Context, server Server, all []process.Listener) Server {
	if server.PID == 0 {
		server.Ports = []int{server.Port}
		return server
	}
	for _, pid := range process.Ancestors(server.PID) {
		d, err := process.Look(pid)
		if err != nil || len(kindsRunning(d)) == 0 {
			continue
		}
		if parent, ok := s.known(ctx, pid, all); ok {
			server = parent
		}
	}
	if server.kind == nil {
		if known, ok := s.known(ctx, server.PID, all); ok {
			server = known
		}
	}
	tree := descendants(server.PID)
	server.Ports = portsOf(all, append(tree, server.PID)...)
	for _, pid := range tree {
		if bytes, err := process.FootprintBytes(pid); err == nil {
			server.FootprintBytes += bytes
		}
	}
	return server
}

// known asks a process at each of its ports, until it answers as a kind that slipway knows.
func (s *System) known(ctx context.Context, pid int, all []process.Listener) (Server, bool) {
	for _, port := range portsOf(all, pid) {
		found, err := s.serversAt(ctx, port, 0)
		if err != nil {
			continue
		}
		for _, server := range found {
			if server.PID == pid && server.kind != nil {
				return server, true
			}
		}
	}
	return Server{}, false
}

// portsOf are the ports on which the processes listen, in rising order.
func portsOf(all []process.Listener, pids ...int) []int {
	var ports []int
	for _, l := range all {
		if pid, ok := process.Owner(l); ok && slices.Contains(pids, pid) {
			ports = append(ports, int(l.Address.Port()))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// descendants are the children of a process and theirs.
func descendants(pid int) []int {
	children, err := process.Children(pid)
	if err != nil {
		return nil
	}
	all := slices.Clone(children)
	for _, child := range children {
		all = append(all, descendants(child)...)
	}
	return all
}

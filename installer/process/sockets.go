package process

import (
	"context"
	"net/netip"
	"slices"
)

// Listener is one listening TCP socket.
type Listener struct {
	Address netip.AddrPort // 0.0.0.0 or :: where it is bound to every address
	UID     int            // owner's uid; -1 where not known
	// PIDs hold the socket (a forked server's socket has several holders), in rising order. Empty means that the
	// holder is hidden, never that there is none.
	PIDs []int
}

// Connection is a TCP socket that does not listen, seen from the side that Local names.
type Connection struct {
	Local, Remote netip.AddrPort
	State         string // the kernel's name, such as ESTABLISHED or CLOSE_WAIT
	PIDs          []int  // holders; empty where hidden, and for a connection that was not accepted yet
	ClientPIDs    []int  // holders of the other end, where that is on this machine and visible
}

// Listeners returns the sockets that listen on port, or on any port if it is 0. An empty answer is a fact on Linux
// (the kernel's own table); on macOS, where lsof answers, it is only "unknown": ask Listened too.
func Listeners(ctx context.Context, port int) ([]Listener, error) { return listeners(ctx, port) }

// Connections returns the sockets whose local port is port, except those that listen and those that the kernel only
// keeps for the protocol (TIME_WAIT and the like, with no process).
func Connections(ctx context.Context, port int) ([]Connection, error) { return connections(ctx, port) }

// OpenSockets counts the TCP sockets that the process holds in any state, except those that listen.
// Errors: ErrGone, ErrHidden.
func OpenSockets(ctx context.Context, pid int) (int, error) { return openSockets(ctx, pid) }

// Listened reports whether a program listens on a port, without binding it: a server that is just starting must not
// find the port taken by our own test of it.
func Listened(ctx context.Context, port int) (bool, error) { return listened(ctx, port) }

// Owner picks the process that owns a listening socket among its holders: the one that is the ancestor of all others
// (a server that forked workers). ok is false where holders are hidden or unrelated: then there is no owner.
func Owner(l Listener) (pid int, ok bool) {
	if len(l.PIDs) == 0 {
		return 0, false
	}
	for _, candidate := range l.PIDs {
		if !slices.ContainsFunc(l.PIDs, func(other int) bool {
			return other != candidate &&
				!descends(other, candidate)
		}) {
			return candidate, true
		}
	}
	return 0, false
}

func descends(pid, ancestor int) bool { return slices.Contains(Ancestors(pid), ancestor) }

// Ancestors are the parent of a process, its parent and so on, the nearest first, without pid 1: orphans are its
// children.
func Ancestors(pid int) []int {
	var list []int
	for range 64 { // deeper chains do not occur, and a pid reused while walking could make a ring
		d, err := look(pid, false)
		if err != nil || d.ParentPID <= 1 {
			break
		}
		pid = d.ParentPID
		list = append(list, pid)
	}
	return list
}

package process

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// lsofSocket is one TCP socket as `lsof -FpuLnT` prints it.
type lsofSocket struct {
	pid, uid      int
	state         string
	local, remote netip.AddrPort // remote is invalid for a listener
}

// parseLsof reads lsof's field output: a line a field, the first letter its kind, "p" opening a process and "f" a file
// in it. Lines that do not parse make a socket with what did, since a socket that is dropped would look like silence.
func parseLsof(out string) []lsofSocket {
	var sockets []lsofSocket
	pid, uid := 0, -1
	var current *lsofSocket
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		value := line[1:]
		switch line[0] {
		case 'p':
			pid, _ = strconv.Atoi(value)
			uid, current = -1, nil
		case 'u':
			if n, err := strconv.Atoi(value); err == nil {
				uid = n
			}
		case 'f':
			sockets = append(sockets, lsofSocket{pid: pid, uid: uid})
			current = &sockets[len(sockets)-1]
		case 'n':
			if current != nil {
				local, remote, _ := strings.Cut(value, "->")
				current.local, current.remote = parseLsofAddress(local), parseLsofAddress(remote)
			}
		case 'T':
			if state, ok := strings.CutPrefix(value, "ST="); ok && current != nil {
				current.state = state
			}
		}
	}
	return sockets
}

// parseLsofAddress reads "127.0.0.1:8000", "[::1]:8000" and "*:8000". An invalid AddrPort where it is none of these.
func parseLsofAddress(s string) netip.AddrPort {
	if port, ok := strings.CutPrefix(s, "*:"); ok {
		s = "0.0.0.0:" + port
	}
	address, _ := netip.ParseAddrPort(s)
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// listenersOf groups lsof's rows by address: one socket that several processes hold prints once for each.
func listenersOf(sockets []lsofSocket, port int) []Listener {
	var list []Listener
	for _, s := range sockets {
		if s.state != "LISTEN" || port != 0 && int(s.local.Port()) != port {
			continue
		}
		i := slices.IndexFunc(list, func(l Listener) bool { return l.Address == s.local })
		if i < 0 {
			list = append(list, Listener{Address: s.local, UID: s.uid})
			i = len(list) - 1
		}
		if !slices.Contains(list[i].PIDs, s.pid) {
			list[i].PIDs = append(list[i].PIDs, s.pid)
			slices.Sort(list[i].PIDs)
		}
	}
	return list
}

// connectionsOf keeps the server's side of each connection and names the processes at the other end.
func connectionsOf(sockets []lsofSocket, port int) []Connection {
	var list []Connection
	for _, s := range sockets {
		if s.state == "LISTEN" || s.state == "TIME_WAIT" || int(s.local.Port()) != port {
			continue
		}
		c := Connection{Local: s.local, Remote: s.remote, State: s.state, PIDs: []int{s.pid}}
		for _, other := range sockets {
			if other.remote.IsValid() && other.local == s.remote && other.remote == s.local {
				c.ClientPIDs = append(c.ClientPIDs, other.pid)
			}
		}
		list = append(list, c)
	}
	return list
}

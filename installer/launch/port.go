package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"slipway/fault"
	"slipway/installer/process"
)

// PortUse says who has a port.
type PortUse struct {
	Taken bool
	Owner string // in words, "" when the system does not say
	PID   int    // 0 when unknown
	Home  string // of another slipway whose server has it, "" when it is no server of ours
}

// PortError: a port of ours is taken.
type PortError struct {
	Port    int
	Use     PortUse
	Monitor bool // it is the monitor's, not the API's
}

func (e *PortError) Error() string {
	port := fmt.Sprintf("port %d", e.Port)
	if e.Monitor {
		port += ", the monitor's,"
	}
	if e.Use.Owner == "" {
		return port + " is in use by a program that the system does not name to this user"
	}
	return port + " is in use by " + e.Use.Owner
}

// Fault names the home whose server has the port, where it is one of slipway's.
func (e *PortError) Fault() fault.Fault {
	f := fault.Fault{Class: fault.Refused, Step: fault.OtherPort}
	switch {
	case e.Monitor:
		f.Step = fault.OtherMonitor
	case e.Use.Home != "":
		f.Step, f.Args = fault.StopOtherHome, []string{e.Use.Home}
	}
	return f
}

// LookPort tests a port: binding on loopback and wildcard, IPv4 and IPv6, without SO_REUSEADDR (with it, macOS lets a
// loopback bind succeed beside a wildcard listener), and connecting to loopback. A bind that fails with nobody
// listening is the remains of closed connections (TIME_WAIT), and then the port is free for a server, whose listener
// does set SO_REUSEADDR.
func LookPort(ctx context.Context, port int) PortUse {
	use := PortUse{Taken: answers(ctx, "127.0.0.1", port) || answers(ctx, "::1", port)}
	if !use.Taken {
		strict := bindable(port, false)
		if strict {
			return use
		}
	}
	use.name(ctx, port)
	if use.PID != 0 || use.Owner != "" {
		use.Taken = true
	}
	if !use.Taken {
		use.Taken = !bindable(port, true)
	}
	return use
}

// name finds out who has the port.
func (use *PortUse) name(ctx context.Context, port int) {
	use.PID, use.Owner = portOwner(ctx, port)
	if use.Home = homeOfServer(use.PID); use.Home != "" {
		use.Owner = fmt.Sprintf("the server of another home of slipway, %q (pid %d)", use.Home, use.PID)
	}
}

// homeOfServer is the home whose engine a process runs: HOME/engines/ID/slipway-server with our marker in HOME. ""
// when it is no server of ours or cannot be determined.
func homeOfServer(pid int) string {
	id, err := process.Observe(pid)
	if err != nil || filepath.Base(id.Exe) != serverName {
		return ""
	}
	engines := filepath.Dir(filepath.Dir(id.Exe))
	home := filepath.Dir(engines)
	if filepath.Base(engines) != "engines" {
		return ""
	}
	if info, err := os.Lstat(filepath.Join(home, homeMarker)); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return home
}

// The names of plan.EngineBinary and plan.MarkerPath, which launch does not import.
const (
	serverName = "slipway-server"
	homeMarker = ".slipway-home"
)

// LookMonitorPort asks whether a program listens on the monitor's port on loopback. It binds nothing: the port is the
// same for every home unless another is asked for, and two looks at once must not see each other.
func LookMonitorPort(ctx context.Context, port int) PortUse {
	if port == 0 || !answers(ctx, "127.0.0.1", port) {
		return PortUse{}
	}
	use := PortUse{Taken: true}
	use.name(ctx, port)
	return use
}

func answers(ctx context.Context, host string, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// bindable binds the port at all four addresses, one after the other, and lets go. An address family that the machine
// does not have says nothing.
func bindable(port int, reuse bool) bool {
	for _, at := range []struct {
		family int
		addr   syscall.Sockaddr
	}{
		{syscall.AF_INET, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}},
		{syscall.AF_INET, &syscall.SockaddrInet4{Port: port}},
		{syscall.AF_INET6, &syscall.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}},
		{syscall.AF_INET6, &syscall.SockaddrInet6{Port: port}},
	} {
		fd, err := syscall.Socket(at.family, syscall.SOCK_STREAM, 0)
		if err != nil {
			continue
		}
		if at.family == syscall.AF_INET6 {
			syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 1)
		}
		if reuse {
			syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
		}
		err = syscall.Bind(fd, at.addr)
		if err == nil {
			err = syscall.Listen(fd, 1)
		}
		syscall.Close(fd)
		if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
			return false
		}
	}
	return true
}

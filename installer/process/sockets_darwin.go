package process

import (
	"context"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// bindControl takes back the SO_REUSEADDR that Go's listener sets.
func bindControl(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0)
	})
	if err != nil {
		return err
	}
	return failed
}

func portFilter(port int) string {
	if port == 0 {
		return "-iTCP"
	}
	return fmt.Sprintf("-iTCP:%d", port)
}

func listeners(ctx context.Context, port int) ([]Listener, error) {
	out, err := lsof(ctx, portFilter(port), "-sTCP:LISTEN", "-FpufnT")
	if err != nil {
		return nil, fmt.Errorf("lsof: %w", err)
	}
	return listenersOf(parseLsof(string(out)), port), nil
}

func connections(ctx context.Context, port int) ([]Connection, error) {
	out, err := lsof(ctx, portFilter(port), "-FpufnT")
	if err != nil {
		return nil, fmt.Errorf("lsof: %w", err)
	}
	return connectionsOf(parseLsof(string(out)), port), nil
}

func openSockets(ctx context.Context, pid int) (int, error) {
	if _, err := Observe(pid); err != nil {
		return 0, err
	}
	out, err := lsof(ctx, "-a", "-p", strconv.Itoa(pid), "-iTCP", "-FpufnT")
	if err != nil {
		return 0, fmt.Errorf("lsof: %w", err)
	}
	count := 0
	for _, s := range parseLsof(string(out)) {
		if s.state != "LISTEN" {
			count++
		}
	}
	return count, nil
}

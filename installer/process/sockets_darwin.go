package process

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

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

// listened asks lsof, and where that finds nothing, which proves nothing, dials. A dial to a free port of the ephemeral
// range can connect to itself: then no program listens.
func listened(ctx context.Context, port int) (bool, error) {
	if list, err := listeners(ctx, port); err != nil || len(list) > 0 {
		return len(list) > 0, err
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		dialer := net.Dialer{Timeout: time.Second}
		c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		itself := c.LocalAddr().String() == c.RemoteAddr().String()
		c.Close()
		if !itself {
			return true, nil
		}
	}
	return false, ctx.Err()
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

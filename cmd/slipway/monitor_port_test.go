package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// A monitor's port that somebody else has is told before anything is done, and another can be asked for at any time.
func TestTakenMonitorPortIsNamed(t *testing.T) {
	r := newRig(t)
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", r.monitor))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	code, _, errOut := r.run(nil, r.setupArgs("--yes")...)
	if code != exitRefused || !strings.Contains(errOut, fmt.Sprintf("Port %d, the monitor's, is in use", r.monitor)) ||
		!strings.Contains(errOut, "--monitor-port") {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if r.servers() != 0 {
		t.Fatal("a server was started")
	}
	other := freePort(t)
	if code, out, errOut := r.run(nil, r.setupArgs("--yes", "--monitor-port", fmt.Sprint(other))...); code != 0 ||
		!strings.Contains(out, fmt.Sprintf("http://127.0.0.1:%d/monitor", other)) {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	_, before, _ := r.run(nil, "status")
	if code, _, errOut := r.run(nil, "up", "--monitor-port", fmt.Sprint(r.monitor)); code != exitRefused ||
		!strings.Contains(errOut, "the monitor's, is in use") {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if _, after, _ := r.run(nil, "status"); after != before {
		t.Fatalf("the server that ran was touched for one that cannot start:\n%s%s", before, after)
	}
	taken.Close()
	if code, out, errOut := r.run(nil, "up", "--monitor-port", fmt.Sprint(r.monitor)); code != 0 ||
		!strings.Contains(out, fmt.Sprintf("http://127.0.0.1:%d/monitor", r.monitor)) {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	if code, _, errOut := r.run(nil, "up", "--monitor-port", fmt.Sprint(r.port)); code != exitUsage {
		t.Fatalf("%d\n%s", code, errOut)
	}
}

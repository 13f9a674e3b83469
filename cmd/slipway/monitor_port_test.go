package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"slipway/installer/answers"
)

// A monitor's port that somebody else has is told before anything is done, and another can be asked for at any time.
func TestTakenMonitorPortIsNamed(t *testing.T) {
	t.Parallel()
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

// Both ports of others are named at once, with one command that takes two that are free; a dry run ends as the set-up.
func TestBothTakenPortsAreNamedAtOnceWithOneCommand(t *testing.T) {
	r := newRig(t)
	for _, port := range []int{r.port, r.monitor} {
		taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
	}
	for _, flag := range []string{"--yes", "--dry-run"} {
		code, out, errOut := r.run(nil, r.setupArgs(flag)...)
		for _, port := range []int{r.port, r.monitor} {
			if !strings.Contains(out+errOut, fmt.Sprint(port)) {
				t.Errorf("%s: port %d is not named\n%s%s", flag, port, out, errOut)
			}
		}
		if code != exitRefused || !strings.Contains(out+errOut, "the monitor's, ") {
			t.Errorf("%s: %d\n%s%s", flag, code, out, errOut)
		}
	}
	code, out, errOut := r.run(nil, r.setupArgs("--yes", "--json")...)
	var e answers.Envelope
	if err := json.Unmarshal([]byte(out), &e); err != nil || code != exitRefused || e.Error == nil ||
		len(e.Error.Next) < 6 {
		t.Fatalf("%d %v\n%s%s", code, err, out, errOut)
	}
	if code, out, errOut := r.run(nil, append(e.Error.Next[1:], "--dry-run")...); code != exitChanges {
		t.Errorf("%v: %d\n%s%s", e.Error.Next, code, out, errOut)
	}
}

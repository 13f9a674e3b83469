package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/plan"
)

// A plan file with one action more and a digest that is right for it: the plan is made again, and is another one.
func TestApplyRefusesAPlanWithAnActionAddedAndItsDigestRecomputed(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.dir, "p.json")
	if code, _, errOut := r.run(nil, "plan", "--port", fmt.Sprint(r.port), "--out", file); code != exitChanges {
		t.Fatalf("%d\n%s", code, errOut)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	p.Actions = append(p.Actions, plan.Action{ID: "extra", Kind: plan.LaunchAction, Sentence: "Run rm -rf.",
		Consent: []plan.Class{plan.Launch}})
	p.Digest = plan.DigestOf(p)
	if err := os.WriteFile(file, plan.WriteFile(p), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := r.run(nil, "apply", "--plan", file, "--digest", p.Digest)
	if code != exitStale || !strings.Contains(errOut, "Nothing was done") {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if _, err := os.Lstat(r.home); err == nil {
		t.Fatal("a home was made")
	}
}

// Every byte of a plan file counts.
func TestApplyRefusesAPlanFileWithAnyByteChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(r.dir, "p.json")
	if code, _, errOut := r.run(nil, "plan", "--no-launch", "--out", file); code != exitChanges {
		t.Fatalf("%d\n%s", code, errOut)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, _, digest, err := plan.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	step := len(data)/40 + 1
	for at := 0; at < len(data); at += step {
		changed := append([]byte{}, data...)
		changed[at] ^= 1
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := r.run(nil, "apply", "--plan", file, "--digest", digest); code != exitStale {
			t.Fatalf("byte %d (%q to %q): %d\n%s", at, data[at], changed[at], code, errOut)
		}
	}
	if _, err := os.Lstat(r.home); err == nil {
		t.Fatal("a home was made")
	}
}

// Whoever listens at the proxy would see every request that is not for this machine.
func TestSetupOfTheEmbeddedModelUsesNoNetwork(t *testing.T) {
	r := newRig(t)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	var requests atomic.Int32
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			requests.Add(1)
			conn.Close()
		}
	}()
	env := []string{"HTTP_PROXY=http://" + proxy.Addr().String(), "HTTPS_PROXY=http://" + proxy.Addr().String()}
	for range 2 {
		if code, _, errOut := r.run(env, r.setupArgs("--yes")...); code != 0 {
			t.Fatalf("%d\n%s", code, errOut)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Fatalf("%d requests", n)
	}
}

func TestEventsAreOneObjectALineAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code, out, errOut := r.run(nil, r.setupArgs("--yes", "--json", "--events", "ndjson")...)
	if code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	seen := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(errOut))
	for lines.Scan() {
		var e apply.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		seen[e.Kind]++
	}
	if seen["action"] != 5 || seen["done"] != 5 || seen["progress"] < 4 {
		t.Fatalf("%v", seen)
	}
	if !json.Valid([]byte(out)) {
		t.Fatal(out)
	}
}

func TestUpAttachedEndsWithItsServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	start := func() (*watched, func(syscall.Signal) int) {
		cmd := r.command(nil, "up", "--attach")
		out := &watched{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.until("it is attached", func() bool {
			return strings.Contains(out.text(), "Attached") && strings.Contains(out.text(), "listening on")
		})
		return out, func(sig syscall.Signal) int {
			if sig != 0 {
				cmd.Process.Signal(sig)
			}
			cmd.Wait()
			return cmd.ProcessState.ExitCode()
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		out, end := start()
		if code := end(sig); code != 128+int(sig) || r.servers() != 0 {
			t.Fatalf("%v: exit code %d, %d servers\n%s", sig, code, r.servers(), out.text())
		}
	}
	out, end := start()
	if code, _, errOut := r.run(nil, "down"); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	if code := end(0); code != 0 || !strings.Contains(out.text(), "stopped by another command") {
		t.Fatalf("%d\n%s", code, out.text())
	}
	out, end = start()
	killServers(r.home)
	if code := end(0); code != exitNotReady || !strings.Contains(out.text(), "ended by itself") {
		t.Fatalf("%d\n%s", code, out.text())
	}
}

// The exit codes' page and the table in the program say the same.
func TestExitCodesPageListsEveryCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(page), "\n") {
		var code int
		var name string
		if n, _ := fmt.Sscanf(strings.ReplaceAll(line, "|", " "), "%d %s", &code, &name); n != 2 {
			continue
		}
		rows++
		if codeName(code) != strings.Trim(name, "`") {
			t.Errorf("%d is %q on the page and %q in the program", code, name, codeName(code))
		}
	}
	if rows != len(fault.Names) {
		t.Errorf("%d codes on the page, %d in the program", rows, len(fault.Names))
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/installer/launch"
	"slipway/installer/process"
)

// pid is the server's process as status tells it.
func (r *rig) serverPID() int {
	r.t.Helper()
	_, out, errOut := r.run(nil, "status", "--json")
	var doc struct {
		Data struct{ Server struct{ PID int } }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Data.Server.PID == 0 {
		r.t.Fatalf("status: %v\n%s%s", err, out, errOut)
	}
	return doc.Data.Server.PID
}

// A living server whose record is lost or damaged, or whose program file is not the one that its record names, is still
// ours: it is seen, used, stopped, and never orphaned.
func TestLivingServerWithoutItsRecordIsNeverOrphaned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	record := filepath.Join(r.home, launch.RecordPath)
	engine := func() string {
		found, err := filepath.Glob(filepath.Join(r.home, "engines", "*", "slipway-server"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v %v", found, err)
		}
		return found[0]
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name   string
		damage func()
	}{
		{"record lost", func() { must(os.Remove(record)) }},
		{"whole folder run lost", func() {
			must(os.RemoveAll(filepath.Dir(record)))
			must(os.Mkdir(filepath.Dir(record),
				0o700))
		}},
		{"record cut", func() { must(os.Truncate(record, 40)) }},
		{"record of another kind", func() { must(os.WriteFile(record, []byte("{}\n"), 0o600)) }},
		{"program renamed", func() { must(os.Rename(engine(), filepath.Join(r.dir, "moved"))) }},
		{"program replaced", func() {
			must(os.Rename(engine(), filepath.Join(r.dir, "moved")))
			copyProgram(t, filepath.Join(r.dir, "moved"), filepath.Join(r.dir, "copy"))
			found, err := filepath.Glob(filepath.Join(r.home, "engines", "*"))
			must(err)
			must(os.Rename(filepath.Join(r.dir, "copy"), filepath.Join(found[0], "slipway-server")))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			setUp := func() int {
				t.Helper()
				if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
					t.Fatalf("setup: %d\n%s", code, errOut)
				}
				pid := r.serverPID()
				row.damage()
				if again := r.serverPID(); again != pid {
					t.Fatalf("status says pid %d, the server has %d", again, pid)
				}
				return pid
			}
			ended := func(what string, pid int) {
				t.Helper()
				if _, err := process.Observe(pid); err == nil { // kill(2) would reach a zombie too
					syscall.Kill(pid, syscall.SIGKILL)
					t.Fatalf("%s left the server alive", what)
				}
			}
			pid := setUp()
			code, out, errOut := r.run(nil, "down")
			if code != 0 || !strings.Contains(out, "has stopped") {
				t.Fatalf("down: %d\n%s%s", code, out, errOut)
			}
			ended("down", pid)

			setUp()
			if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
				t.Fatalf("setup against our own server: %d\n%s", code, errOut)
			}
			if code, _, errOut := r.run(nil, "up"); code != 0 {
				t.Fatalf("up against our own server: %d\n%s", code, errOut)
			}

			pid = setUp()
			if code, out, errOut := r.run(nil, "uninstall", "--yes"); code != 0 {
				t.Fatalf("uninstall: %d\n%s%s", code, out, errOut)
			}
			ended("uninstall", pid)
			os.RemoveAll(r.home) // a replaced program is not of the receipt and stays
		})
	}
}

// A server that hangs is not a server that starts, and nothing says that all is well.
func TestHungServerIsReportedAndReplaced(t *testing.T) {
	t.Parallel() // it waits, most of its time
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	pid := r.serverPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	if code, out, errOut := r.run(nil, "status"); code != exitNotReady || !strings.Contains(out, "does not answer") {
		t.Fatalf("status: %d\n%s%s", code, out, errOut)
	}
	code, out, errOut := r.run(nil, "doctor")
	if code == exitOK || strings.Contains(out, "Ready:") || !strings.Contains(out, "does not answer") {
		t.Fatalf("doctor: %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut := r.run(nil, "up"); code != 0 || !strings.Contains(errOut,
		"does not answer. It has 20s to answer, then 15s to end") {
		t.Fatalf("up: %d\n%s%s", code, out, errOut)
	}
	if now := r.serverPID(); now == pid || r.servers() != 1 {
		t.Fatalf("pid %d was %d, and %d servers run", now, pid, r.servers())
	}
	if code, out, errOut := r.run(nil, "down"); code != 0 || r.servers() != 0 {
		t.Fatalf("down: %d\n%s%s", code, out, errOut)
	}
	r.clean()
}

package neighbor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/installer/neighbor/record"
)

// plant puts a program in the restorer's place that leaves a trace wherever it is run.
func plant(t *testing.T, s *System) (trace string) {
	t.Helper()
	trace = filepath.Join(t.TempDir(), "ran")
	path := s.folder().Path(record.Restorer)
	os.MkdirAll(filepath.Dir(path), 0o700)
	os.Remove(path)
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$@\" >> '"+trace+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return trace
}

func notRun(t *testing.T, trace string) {
	t.Helper()
	if b, err := os.ReadFile(trace); err == nil {
		t.Errorf("the planted program was run with %q", b)
	}
}

func TestPlantedRestorerIsNotRunByStopAndRestore(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	trace := plant(t, s) // before slipway came
	d.onlyRecordLeft(s)
	notRun(t, trace)
	after := plant(t, s) // while it is stopped
	if o := one(t, s); o.Result != Restored {
		t.Errorf("%+v", o)
	}
	notRun(t, after)
	if _, err := os.Lstat(s.folder().Path(record.Restorer)); err == nil {
		t.Error("the planted program is still there")
	}
}

func TestRestorerReplacedWhileTheWatcherWaitsIsNotRun(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	l := d.stoppedBy(s)
	trace := plant(t, s)
	l.kill()
	eventually(t, "the watcher says no and ends", func() bool {
		list := must(s.folder().List())
		return len(list) == 1 && list[0].State == record.StateFailed && len(helpers(t, s, "watch-restore")) == 0
	})
	notRun(t, trace)
	if list := must(s.folder().List()); !strings.Contains(list[0].Why, "was changed since slipway put it there") {
		t.Errorf("why: %q", list[0].Why)
	}
	if o := one(t, s); o.Result != Restored || len(d.running()) != 1 {
		t.Errorf("the next run: %+v", o)
	}
	notRun(t, trace)
}

func TestRebootAgentNamesNoPlantedProgram(t *testing.T) {
	s := newSystem(t)
	s.AgentFolder = t.TempDir()
	trace := plant(t, s)
	if err := s.WriteRebootAgent(); err == nil ||
		!strings.Contains(err.Error(), "is not the program that slipway put there") {
		t.Errorf("error %v", err)
	}
	if entries, _ := os.ReadDir(s.AgentFolder); len(entries) != 0 {
		t.Errorf("written: %v", entries)
	}
	notRun(t, trace)
}

func TestFolderThatOthersCouldFillStopsNothing(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").start()
	folder := filepath.Dir(s.folder().Path(record.Restorer))
	os.MkdirAll(folder, 0o700)
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := s.Stop(ctx, []Server{d.found(s)}, StopOptions{})
	if err == nil || !strings.Contains(err.Error(), "chmod 700") || d.count("end") != 0 {
		t.Errorf("error %v, log %q", err, d.log())
	}
	if list, err := s.Restore(ctx, false); err != nil || len(list) != 1 || list[0].Result != Failed ||
		!strings.Contains(list[0].Sentence, "chmod 700") {
		t.Errorf("%+v, %v", list, err)
	}
	os.Chmod(folder, 0o700)
	if _, err := s.Stop(ctx, []Server{d.found(s)}, StopOptions{}); err != nil {
		t.Errorf("after chmod: %v", err)
	}
}

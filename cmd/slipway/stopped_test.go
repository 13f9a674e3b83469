package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"slipway/fault"
	"slipway/installer/answers"
	testhub "slipway/test/hub"
	"slipway/test/neighbors/alone"
)

// stops are the signals that end a verb, and how it says so.
var stops = []struct {
	signal syscall.Signal
	stop   *stopError
	says   string
}{
	{syscall.SIGINT, &stopError{fault.Interrupted, "Ctrl-C"}, "Stopped by Ctrl-C"},
	{syscall.SIGTERM, &stopError{fault.Terminated, "SIGTERM"}, "Stopped by SIGTERM"},
}

// stoppedRight holds how a command that a signal ended has spoken.
func stoppedRight(t *testing.T, what string, says string, want, code int, out, errOut string, asDocument bool) {
	t.Helper()
	if code != want {
		t.Errorf("%s: exit code %d, want %d\n%s%s", what, code, want, out, errOut)
	}
	if !asDocument {
		if !strings.Contains(errOut, "slipway: "+says) {
			t.Errorf("%s does not say %q:\n%s%s", what, says, out, errOut)
		}
		return
	}
	var e answers.Envelope
	if err := json.Unmarshal([]byte(out), &e); err != nil || e.OK || e.Error == nil || e.Meta.ExitCode != want ||
		e.Error.Code != codeName(want) || !strings.HasPrefix(e.Error.Message, says) {
		t.Errorf("%s: %v\n%s", what, err, out)
		return
	}
	if continues := strings.Contains(e.Error.Message, "continue"); e.Error.Retryable != continues {
		t.Errorf("%s: it can be continued: %v, and retryable is %v", what, continues, e.Error.Retryable)
	}
}

// A signal at the very beginning ends every verb with "Stopped" and the signal's code, in words and as a document.
func TestEveryVerbThatASignalStopsSaysSo(t *testing.T) {
	r := newRig(t)
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		t.Fatalf("%d\n%s", code, errOut)
	}
	t.Setenv("SLIPWAY_HOME", r.home)
	t.Setenv("HOME", filepath.Join(r.dir, "user"))
	for name := range leafVerbs(t) {
		for _, row := range stops {
			for _, flags := range [][]string{nil, {"--json"}} {
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(row.stop)
				var out, errOut bytes.Buffer
				s := newSession(ctx, append([]string{"slipway"}, verbLine(name, flags...)...), &out, &errOut)
				code := s.finish(newApp(s).RunContext(ctx, append([]string{"slipway"}, verbLine(name, flags...)...)))
				stoppedRight(t, fmt.Sprint(name, flags), row.says, 128+int(row.signal), code, out.String(),
					errOut.String(), flags != nil)
			}
		}
	}
}

// A signal in the middle of what takes long ends it with "Stopped": fetching a list and weights, building, starting,
// waiting, asking, measuring, checking, reading from a pipe, following a log.
func TestVerbStoppedInTheMiddleSaysSo(t *testing.T) {
	t.Parallel()
	t.Run("setup that fetches", func(t *testing.T) {
		hub, revisions := threeModels(t)
		r, at := onMac(t, "m1-16", revisions)
		for _, place := range []testhub.Place{testhub.Git, testhub.CDN} {
			hub.Script(testhub.Fault{Place: place, Kind: testhub.Stall, Times: -1})
			for _, verb := range [][]string{r.setupArgs("--yes"), {"models", "lock", "--model", "qwen3.5-9b-4bit"}} {
				if verb[0] == "models" && place != testhub.Git {
					continue
				}
				r.stopsWhen(func() bool { return asked(hub, place) }, hub.Forget, at(hub.URL), verb...)
			}
			hub.Calm()
			r.clean()
		}
	})
	t.Run("setup that builds", func(t *testing.T) {
		r := newRig(t)
		source, err := filepath.Abs("testdata/source")
		if err != nil {
			t.Fatal(err)
		}
		building := filepath.Join(r.dir, "building")
		goRoot := filepath.Join(r.dir, "go")
		for name, text := range map[string]string{"VERSION": "go1.26.8\n",
			"bin/go": "#!/bin/sh\necho > '" + building + "'\nexec sleep 600\n"} {
			file := filepath.Join(goRoot, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		env := []string{"PATH=" + filepath.Join(goRoot, "bin") + ":/usr/bin:/bin", "TEST_PREBUILT_DIGEST="}
		r.stopsWhen(func() bool { _, err := os.Stat(building); return err == nil }, func() { os.Remove(building) }, env,
			r.setupArgs("--yes", "--source", source)...)
	})
	t.Run("setup that starts a server", func(t *testing.T) {
		r := newRig(t)
		if code, _, errOut := r.run(nil, r.setupArgs("--yes", "--no-launch")...); code != 0 {
			t.Fatalf("%d\n%s", code, errOut)
		}
		if err := os.WriteFile(filepath.Join(r.home, "fault"), []byte("slow\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.stopsWhen(func() bool { return r.servers() == 1 }, func() {
			if n := r.servers(); n > 0 {
				t.Errorf("%d servers are left", n)
			}
		}, nil, r.setupArgs("--yes")...)
	})
	t.Run("verbs that wait for a server", func(t *testing.T) {
		r := newRig(t)
		if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
			t.Fatalf("%d\n%s", code, errOut)
		}
		mute, questions := muteServer(t)
		folder := filepath.Join(r.dir, "answers")
		for _, verb := range [][]string{{"measure", "--url", mute}, {"check", "needle", "--url", mute, "--out", folder},
			{"check", "all", "--url", mute, "--out", folder}, {"check", "compare", "--out", folder, mute, mute}} {
			r.stopsWhen(func() bool { return questions.Load() > 0 }, func() { questions.Store(0) }, nil, verb...)
		}
		reading := filepath.Join(r.dir, "pipe")
		if err := syscall.Mkfifo(reading, 0o600); err != nil {
			t.Fatal(err)
		}
		var writer *os.File
		opened := func() bool { // succeeds once somebody reads
			f, err := os.OpenFile(reading, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				writer = f
			}
			return err == nil
		}
		for _, verb := range [][]string{{"measure", "--file", reading}, {"measure", "--key-file", reading}} {
			r.stopsWhen(opened, func() {
				if writer != nil {
					writer.Close()
				}
			}, nil, verb...)
		}
		file := filepath.Join(r.home, "fault")
		if err := os.WriteFile(file, []byte("mute\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		wasAsked := filepath.Join(r.home, "asked")
		r.stopsWhen(func() bool { _, err := os.Stat(wasAsked); return err == nil }, func() { os.Remove(wasAsked) }, nil,
			"ask", "Hello")
		for _, verb := range [][]string{{"logs", "--follow"}, {"status", "--watch"}} {
			for _, row := range stops {
				r.stopWhenItSpeaks(row.signal, row.says, verb...)
			}
		}
	})
}

// neighbors waits for a server that does not answer, and a signal ends that.
func TestLookAtASilentServerIsStoppedByASignal(t *testing.T) {
	t.Parallel() // it waits for its turn, most of its time
	leave, err := alone.Enter()
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	r := newRig(t)
	wasAsked := filepath.Join(r.dir, "asked")
	silent, err := exec.LookPath("llama-server")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(silent, "--port", fmt.Sprint(freePort(t)))
	cmd.Env = append(os.Environ(), "SILENT_SERVER_ASKED="+wasAsked)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	r.until("it listens", func() bool { _, err := os.Stat(wasAsked + ".listens"); return err == nil })
	r.stopsWhen(func() bool { _, err := os.Stat(wasAsked); return err == nil }, func() { os.Remove(wasAsked) }, nil,
		"neighbors")
}

func asked(hub *testhub.Server, place testhub.Place) bool {
	for _, seen := range hub.Log() {
		if seen.Place == place {
			return true
		}
	}
	return false
}

// muteServer lists a model and never answers a question.
func muteServer(t *testing.T) (address string, questions *atomic.Int32) {
	t.Helper()
	questions = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models":
			io.WriteString(w, `{"data":[{"id":"mute","owned_by":"test"}]}`)
		case r.Method == http.MethodPost:
			io.Copy(io.Discard, r.Body)
			questions.Add(1)
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, questions
}

// silentServer listens as llama-server would, notes that it was asked, and never answers.
func silentServer() {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[len(os.Args)-1])
	if err != nil {
		panic(err)
	}
	note := os.Getenv("SILENT_SERVER_ASKED")
	os.WriteFile(note+".listens", nil, 0o600)
	for {
		if _, err := l.Accept(); err != nil {
			return
		}
		os.WriteFile(note, nil, 0o600)
	}
}

// stopsWhen starts a verb for each signal, in words and as a document, and sends the signal once it is in the middle.
func (r *rig) stopsWhen(inTheMiddle func() bool, again func(), env []string, args ...string) {
	r.t.Helper()
	for _, row := range stops {
		for _, asDocument := range []bool{false, true} {
			again()
			line := args
			if asDocument {
				at := 1
				if args[0] == "check" || args[0] == "models" {
					at = 2
				}
				line = append(append(append([]string{}, args[:at]...), "--json"), args[at:]...)
			}
			cmd := r.command(env, line...)
			var out, errOut watched
			cmd.Stdout, cmd.Stderr = &out, &errOut
			if err := cmd.Start(); err != nil {
				r.t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { cmd.Wait(); close(ended) }()
			r.until("it was in the middle", func() bool {
				select {
				case <-ended:
					r.t.Fatalf("%v ended by itself\n%s%s", line, out.text(), errOut.text())
				default:
				}
				return inTheMiddle()
			})
			cmd.Process.Signal(row.signal)
			<-ended
			stoppedRight(r.t, fmt.Sprint(line, " ", row.signal), row.says, 128+int(row.signal),
				cmd.ProcessState.ExitCode(), out.text(), errOut.text(), asDocument)
		}
	}
	again()
}

// stopWhenItSpeaks sends the signal after the first words of a verb that only shows what happens.
func (r *rig) stopWhenItSpeaks(sig syscall.Signal, says string, args ...string) {
	r.t.Helper()
	cmd := r.command(nil, args...)
	var out, errOut watched
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.until("it speaks", func() bool { return out.text() != "" })
	cmd.Process.Signal(sig)
	cmd.Wait()
	stoppedRight(r.t, fmt.Sprint(args), says, 128+int(sig), cmd.ProcessState.ExitCode(), out.text(), errOut.text(),
		false)
}

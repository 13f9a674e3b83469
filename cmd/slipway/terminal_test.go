package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/installer/process"
)

// inTmux runs slipway in a real terminal: tmux answers the cursor query. It returns what the screen shows and a way to
// type.
type tmux struct {
	t      *testing.T
	socket string
	exit   string // file that gets the exit code
}

func (r *rig) inTmux(args ...string) *tmux {
	r.t.Helper()
	return r.inTmuxOf(200, 60, nil, args...)
}

// inTmuxOf is inTmux with a terminal of so many columns and lines, and more of an environment.
func (r *rig) inTmuxOf(columns, lines int, env []string, args ...string) *tmux {
	r.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		r.t.Skip("tmux is not installed (apt-get install tmux): the terminal path is not driven here")
	}
	x := &tmux{t: r.t, socket: filepath.Join(r.dir, "tmux"), exit: filepath.Join(r.dir, "exit")}
	cmd := r.command(env, args...)
	var line strings.Builder
	line.WriteString("env -i LANG=C.UTF-8 ")
	for _, e := range cmd.Env {
		if !strings.HasPrefix(e, "TERM=") {
			line.WriteString(shellWords([]string{e}) + " ")
		}
	}
	fmt.Fprintf(&line, "TERM=$TERM %s; echo $? > %s; sleep 600", shellWords(append([]string{r.slip}, args...)),
		shellWords([]string{x.exit}))
	x.run("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines), line.String())
	r.t.Cleanup(func() { exec.Command("tmux", "-S", x.socket, "kill-server").Run() })
	return x
}

func (x *tmux) run(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", x.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (x *tmux) screen() string { return x.run("capture-pane", "-p", "-J", "-S", "-200") }

func (x *tmux) keys(keys ...string) { x.run(append([]string{"send-keys"}, keys...)...) }

func (x *tmux) shows(text string) {
	x.t.Helper()
	for range 600 {
		if strings.Contains(x.screen(), text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	x.t.Fatalf("the screen never shows %q:\n%s", text, x.screen())
}

func (x *tmux) ends(code string) {
	x.t.Helper()
	for range 600 {
		if data, err := os.ReadFile(x.exit); err == nil && len(data) > 0 {
			if got := strings.TrimSpace(string(data)); got != code {
				x.t.Fatalf("exit code %s, want %s\n%s", got, code, x.screen())
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	x.t.Fatalf("it never ended:\n%s", x.screen())
}

func TestTerminalAsksOnceAndTakesYesInTwoLanguages(t *testing.T) {
	for _, row := range []struct{ name, typed string }{{"English", "yes"}, {"Russian", "да"}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			x := r.inTmux(r.setupArgs()...)
			x.shows("Do this?")
			if screen := x.screen(); !strings.Contains(screen, "Start the server on 127.0.0.1") ||
				!strings.Contains(screen, "? Do this?") {
				t.Fatalf("the plan is not shown before the question, or the question is not a drawn one:\n%s", screen)
			}
			x.keys("-l", row.typed)
			x.keys("Enter")
			x.shows("It says: I am a test double.")
			x.ends("0")
			// the question, and survey's own repetition of it with the answer
			if n := strings.Count(x.screen(), "Do this?"); n > 2 {
				t.Fatalf("asked %d times:\n%s", n, x.screen())
			}
		})
	}
}

// On a Mac everything from the machine to the question is on the screen of a terminal of 80 by 24, and wraps at words.
func TestTerminalShowsMachineAndQuestionOnOneScreen(t *testing.T) {
	_, revisions := threeModels(t)
	r, at := onMac(t, "m1-16", revisions)
	x := r.inTmuxOf(80, 24, at("http://127.0.0.1:1"), r.setupArgs()...)
	x.shows("Do this?")
	now, top := x.run("capture-pane", "-p"), "Machine: Apple M1, "
	if strings.Contains(now, "\nNote: ") { // a model server of this machine has memory: that takes lines
		top = "Model: "
	}
	if !strings.HasPrefix(now, top) || !strings.Contains(now, "\nTo undo it, run slipway uninstall --home") {
		t.Errorf("the screen does not begin with the machine, or breaks words:\n%s", now)
	}
	x.keys("n")
	x.keys("Enter")
	x.ends("5")
}

func TestTerminalNoAndCtrlCDoNothing(t *testing.T) {
	for _, row := range []struct{ name, key, code string }{{"no", "n", "5"}, {"empty line", "", "5"},
		{"Ctrl-C", "C-c", "130"}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			x := r.inTmux(r.setupArgs()...)
			x.shows("Do this?")
			if row.key != "" {
				x.keys(row.key)
			}
			x.keys("Enter")
			x.ends(row.code)
			if _, err := os.Lstat(r.home); err == nil {
				t.Fatal("a home was made")
			}
		})
	}
}

// A SIGTERM at the question ends it, whatever draws the question.
func TestTerminalQuestionEndsWithSIGTERM(t *testing.T) {
	r := newRig(t)
	x := r.inTmux(r.setupArgs()...)
	x.shows("Do this?")
	pids, err := process.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for _, pid := range pids {
		if d, err := process.Look(pid); err == nil && len(d.Argv) > 1 && d.Argv[0] == r.slip {
			syscall.Kill(pid, syscall.SIGTERM)
			stopped++
		}
	}
	if stopped != 1 {
		t.Fatalf("%d processes are slipway's", stopped)
	}
	x.ends("143")
	x.shows("Stopped by SIGTERM")
	if _, err := os.Lstat(r.home); err == nil {
		t.Fatal("a home was made")
	}
}

// script gives a pseudo-terminal with no emulator behind it: nobody answers the cursor query, and survey would wait for
// ever. The plain question must come instead, and take an answer.
func TestTerminalThatNeverAnswersTheCursorQuery(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil || runtime.GOOS != "linux" {
		t.Skip("script of util-linux is not here (apt-get install bsdutils): the bare terminal is not driven")
	}
	for _, row := range []struct {
		name, typed string
		code        int
	}{{"да", "да\n", 0}, {"y", "y\n", 0}, {"no", "no\n", 5}, {"end of input", "\x04", 5}, {"Ctrl-C", "\x03", 130}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			args := shellWords(append([]string{r.slip}, r.setupArgs()...))
			cmd := r.command(nil)
			cmd.Path, cmd.Args = "/usr/bin/script", []string{"script", "-qec", args, "/dev/null"}
			cmd.Env = append(cmd.Env, "SHELL=/bin/sh")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out := &watched{}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r.until("the question was asked", func() bool { return strings.Contains(out.text(), "Do this? [y/N]") })
			in.Write([]byte(row.typed))
			cmd.Wait()
			in.Close()
			if code := cmd.ProcessState.ExitCode(); code != row.code {
				t.Fatalf("exit code %d, want %d\n%s", code, row.code, out.text())
			}
		})
	}
}

// What was drawn before must be gone, and no line may take two: the screen is read back from a terminal that gets
// narrow.
func TestTerminalWatchClearsOldLinesAndNeverWraps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if code, out, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	x := r.inTmux("status", "--watch")
	x.shows("The server answers at ")
	x.shows("Ctrl-C ends this.")

	x.run("resize-window", "-x", "40", "-y", "12")
	x.shows("…\n")
	for range 3 { // several drawings over the same place
		time.Sleep(watchEvery)
		now := x.run("capture-pane", "-p")
		if n := strings.Count(now, "Set up in "); n != 1 || strings.Count(now, "Ctrl-C ends this.") != 1 {
			t.Fatalf("it is drawn %d times:\n%s", n, now)
		}
		for line := range strings.Lines(now) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 40 {
				t.Errorf("a line of %d columns: %s", n, line)
			}
		}
	}

	if code, out, errOut := r.run(nil, "down"); code != 0 {
		t.Fatalf("%d\n%s%s", code, out, errOut)
	}
	x.shows("The server is stopped.")
	if now := x.run("capture-pane", "-p"); strings.Contains(now, "The server answers at") {
		t.Errorf("what is no longer true still stands there:\n%s", now)
	}
	x.keys("C-c")
	x.ends("130")
}

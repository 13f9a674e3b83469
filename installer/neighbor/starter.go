package neighbor

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/installer/process"
)

// starterOf finds who started a process and may start it again: a launchd job, a systemd unit, an application, or a
// program that watches it. Such a starter starts a server again right after a plain signal.
func (s *System) starterOf(ctx context.Context, d process.Details) Starter {
	if s.Launchctl != "" {
		if label, ok := s.launchdLabel(ctx, d.PID); ok {
			return s.launchdStarter(ctx, label)
		}
	}
	if bundle := bundleOf(d.Exe); bundle != "" {
		return Starter{Type: "app", Name: bundle}
	}
	if starter, ok := s.systemdStarter(ctx, cgroupOf(d.PID), d.PID); ok {
		return starter
	}
	return parentStarter(d)
}

// bundleOf is the application bundle that contains an executable: the outermost one.
func bundleOf(exe string) string {
	before, _, ok := strings.Cut(exe, ".app/Contents/")
	// Framework builds of Python run from Python.app: an interpreter, no application.
	if !ok || filepath.Base(before) == "Python" {
		return ""
	}
	return before + ".app"
}

var (
	shells = []string{"sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "csh", "nu"}
	// A wrapper waits for its child and ends with it.
	wrappers = []string{"caffeinate", "uv", "uvx", "pipx", "env", "nohup", "time", "nice", "setsid", "sudo", "login",
		"script", "mise", "direnv"}
	// Places where people type and where orphans end up; and slipway, which starts a neighbour once.
	terminals = []string{"slipway", "tmux", "tmux: server", "screen", "sshd", "launchd", "systemd", "init",
		"Terminal", "iTerm2"}
	supervisors = []string{"supervisord", "runsv", "runsvdir", "s6-supervise", "s6-svscan", "circusd", "monit", "god",
		"pm2", "foreman", "honcho", "nodemon", "watchexec", "entr"}
)

// parentStarter judges the parent: a person's shell and the system's own collector of orphans start nothing again;
// everything else might.
func parentStarter(d process.Details) Starter {
	pid := d.ParentPID
	for range 8 {
		if pid <= 0 {
			return Starter{Type: "user"}
		}
		parent, err := process.Look(pid)
		if err != nil {
			return Starter{Type: "user"} // it ended while we looked: the process is an orphan
		}
		name := programName(parent)
		switch {
		case slices.Contains(supervisors, name):
			return Starter{Type: "supervisor", Name: plain(name), PID: pid}
		case pid == 1 || slices.Contains(terminals, name) || slices.Contains(shells, name) && interactive(parent):
			return Starter{Type: "user"}
		case slices.Contains(wrappers, name):
			pid = parent.ParentPID
			continue
		}
		if bundle := bundleOf(parent.Exe); bundle != "" {
			return Starter{Type: "app", Name: bundle, PID: pid}
		}
		return Starter{Type: "supervisor", Name: plain(name), PID: pid}
	}
	return Starter{Type: "user"}
}

// programName is the name of the program, or of the script that its interpreter runs.
func programName(d process.Details) string {
	if len(d.Argv) == 0 {
		return filepath.Base(d.Exe)
	}
	c := commandOf(d)
	if c.interpreted() && len(c.argv) > 1 && !strings.HasPrefix(c.argv[1], "-") {
		return filepath.Base(c.argv[1])
	}
	return strings.TrimPrefix(filepath.Base(d.Argv[0]), "-")
}

// interactive: a shell with no script and no -c; a shell that runs a script may be a loop.
func interactive(d process.Details) bool {
	for i, arg := range d.Argv {
		if i > 0 && (!strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") &&
			strings.Contains(arg, "c")) {
			return false
		}
	}
	return len(d.Argv) > 0
}

// cgroupOf is the control group of a process, in the kernel's words; empty off Linux.
func cgroupOf(pid int) string {
	if runtime.GOOS != "linux" {
		return ""
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return ""
	}
	return string(b)
}

// systemdStarter finds the unit behind a control group. A terminal or a desktop may be a unit too, with everything that
// a person started in it: only a unit whose main process is the server is the server's.
func (s *System) systemdStarter(ctx context.Context, cgroup string, pid int) (Starter, bool) {
	unit, system, ok := unitOf(cgroup)
	if !ok {
		return Starter{}, false
	}
	starter := Starter{Type: "systemd", Name: unit, system: system}
	if system || s.Systemctl == "" {
		return starter, true // refused in either case
	}
	out, err := s.service(ctx, s.Systemctl, "--user", "show", "--property=MainPID", "--", unit)
	main, found := strings.CutPrefix(strings.TrimSpace(string(out)), "MainPID=")
	if err != nil || !found || main != strconv.Itoa(pid) {
		starter.shared = true
	}
	return starter, true
}

// unitOf reads the innermost unit of a control group: a ".service", if no ".scope" or ".slice" is below it. A scope is
// a terminal or a session, a slice only a share. Folders below the unit are its own.
func unitOf(cgroup string) (unit string, system, ok bool) {
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || (parts[0] != "0" || parts[1] != "") && parts[1] != "name=systemd" {
			continue
		}
		folders := strings.Split(parts[2], "/")
		i := len(folders) - 1
		for i >= 0 && !strings.HasSuffix(folders[i], ".service") && !strings.HasSuffix(folders[i], ".scope") &&
			!strings.HasSuffix(folders[i], ".slice") {
			i--
		}
		// The user's own manager holds everything that has no unit of its own.
		if i < 0 || !strings.HasSuffix(folders[i], ".service") || strings.HasPrefix(folders[i], "user@") {
			continue
		}
		user := slices.ContainsFunc(folders[:i], func(f string) bool { return strings.HasPrefix(f, "user@") })
		return folders[i], !user, true
	}
	return "", false, false
}

// launchdLabel finds the job that owns a pid in the list of the user's jobs.
func (s *System) launchdLabel(ctx context.Context, pid int) (string, bool) {
	out, err := s.service(ctx, s.Launchctl, "list")
	if err != nil {
		return "", false
	}
	return labelOf(string(out), pid)
}

// labelOf reads `launchctl list`: PID, last exit status, label, with tabs between.
func labelOf(list string, pid int) (string, bool) {
	for line := range strings.Lines(list) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) == 3 && fields[0] == strconv.Itoa(pid) {
			return fields[2], true
		}
	}
	return "", false
}

func (s *System) launchdStarter(ctx context.Context, label string) Starter {
	if bundle, ok := strings.CutPrefix(label, "application."); ok {
		return Starter{Type: "app", Name: bundle}
	}
	starter := Starter{Type: "launchd", Name: label}
	if strings.HasPrefix(label, "homebrew.mxcl.") {
		starter.Type = "brew"
	}
	out, err := s.service(ctx, s.Launchctl, "print", s.domain()+"/"+label)
	if err != nil {
		return starter
	}
	for line := range strings.Lines(string(out)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "path = "); ok && filepath.IsAbs(path) {
			starter.Plist = path
			break
		}
	}
	return starter
}

// domain is launchd's domain of the user's own jobs. Daemons of the machine are in "system" and not found there.
func (s *System) domain() string { return "gui/" + strconv.Itoa(s.UID) }

// service runs launchctl or systemctl: the system's own managers, which install and wake nothing by being asked.
func (s *System) service(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, max(10*time.Second, s.Timing.Request))
	defer cancel()
	return runService(ctx, program, args...)
}

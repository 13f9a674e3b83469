package neighbor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"slipway/installer/process"
)

// What /proc/PID/cgroup says on machines with systemd: Debian 13 and Ubuntu (one hierarchy), older ones (several).
func TestUnitIsReadFromTheControlGroup(t *testing.T) {
	for _, row := range []struct {
		name, group, unit string
		system, ok        bool
	}{
		{"a unit of the user", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service\n",
			"llama.service", false, true},
		{"an instance of a template",
			"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-mtplx.slice/mtplx@8000.service\n",
			"mtplx@8000.service", false, true},
		{"a unit of the machine", "0::/system.slice/ollama.service\n", "ollama.service", true, true},
		{"a unit with groups of its own", "0::/system.slice/ollama.service/runners/7b\n", "ollama.service", true, true},
		{"a session at the console or by ssh", "0::/user.slice/user-1000.slice/session-3.scope\n", "", false, false},
		{"a terminal of GNOME", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-5c3f.scope\n", "", false, false},
		{"the user's manager itself", "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", false,
			false},
		{"right below the user's manager", "0::/user.slice/user-1000.slice/user@1000.service\n", "", false, false},
		{"a container", "0::/\n", "", false, false},
		{"a container of docker, seen from outside", "0::/system.slice/docker-3f2a.scope\n", "", false, false},
		{"several hierarchies", "12:pids:/user.slice/user-1000.slice/user@1000.service\n3:cpu,cpuacct:/other.service\n" +
			"1:name=systemd:/user.slice/user-1000.slice/user@1000.service/llama.service\n0::/user.slice/user-1000.slice/user@1000.service/llama.service\n", "llama.service", false, true},
		{"only other hierarchies", "3:cpu,cpuacct:/other.service\n", "", false, false},
		{"colons in a name", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a:b.service\n", "a:b.service",
			false, true},
		{"nothing", "", "", false, false},
		{"no control group", "llama.service\n", "", false, false},
	} {
		unit, system, ok := unitOf(row.group)
		if unit != row.unit || system != row.system || ok != row.ok {
			t.Errorf("%s: %q, system %v, %v", row.name, unit, system, ok)
		}
	}
}

// The print of a job as macOS 14 and 15 give it, shortened; the list is `launchctl list`.
const (
	launchctlList = "PID\tStatus\tLabel\n-\t0\tcom.apple.SafariHistoryServiceAgent\n812\t0\thomebrew.mxcl.omlx\n-\t-9\tcom.apple.progressd\n" +
		"8123\t0\tcom.example.mtplx\n1234\t0\tapplication.com.electron.ollama.1152921500312.1152921500317\n"
	launchctlPrint = `gui/501/homebrew.mxcl.omlx = {
	active count = 1
	path = /Users/me/Library/LaunchAgents/homebrew.mxcl.omlx.plist
	type = LaunchAgent
	state = running

	program = /opt/homebrew/opt/omlx/bin/omlx
	arguments = {
		/opt/homebrew/opt/omlx/bin/omlx
		serve
	}

	stdout path = /opt/homebrew/var/log/omlx.log
	environment = {
		XPC_SERVICE_NAME => homebrew.mxcl.omlx
	}

	domain = gui/501 [100005]
	minimum runtime = 10
	exit timeout = 5
	runs = 1
	pid = 812
	properties = keepalive | runatload | inferred program
}
`
)

func TestJobIsReadFromLaunchctl(t *testing.T) {
	for pid, want := range map[int]string{812: "homebrew.mxcl.omlx", 8123: "com.example.mtplx", 81: "", 0: "",
		1234: "application.com.electron.ollama.1152921500312.1152921500317"} {
		if label, ok := labelOf(launchctlList, pid); label != want || ok != (want != "") {
			t.Errorf("pid %d: %q, %v", pid, label, ok)
		}
	}
	s := newSystem(t)
	s.Launchctl = filepath.Join(t.TempDir(), "launchctl")
	for _, row := range []struct {
		label, print string
		want         Starter
	}{
		{"homebrew.mxcl.omlx", launchctlPrint, Starter{Type: "brew", Name: "homebrew.mxcl.omlx",
			Plist: "/Users/me/Library/LaunchAgents/homebrew.mxcl.omlx.plist"}},
		{"com.example.mtplx", launchctlPrint, Starter{Type: "launchd", Name: "com.example.mtplx",
			Plist: "/Users/me/Library/LaunchAgents/homebrew.mxcl.omlx.plist"}},
		{"com.example.submitted", "gui/501/com.example.submitted = {\n\tactive count = 1\n\tpath = (submitted by " +
			"launchctl.1234)\n}\n", Starter{Type: "launchd", Name: "com.example.submitted"}},
		{"application.com.electron.ollama.1.2", "", Starter{Type: "app", Name: "com.electron.ollama.1.2"}},
	} {
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = print ] && cat <<'END'\n%sEND\n", row.print)
		if err := os.WriteFile(s.Launchctl, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := s.launchdStarter(ctx, row.label); got != row.want {
			t.Errorf("%s: %+v", row.label, got)
		}
	}
}

func TestShellThatRunsAScriptCountsAsASupervisor(t *testing.T) {
	for _, row := range []struct {
		argv []string
		want bool
	}{
		{[]string{"-zsh"}, true},
		{[]string{"bash", "-l"}, true},
		{[]string{"/bin/bash", "--login", "-i"}, true},
		{[]string{"sh", "-c", "mtplx serve"}, false},
		{[]string{"bash", "-lc", "mtplx serve"}, false},
		{[]string{"bash", "keep.sh"}, false},
		{nil, false},
	} {
		if got := interactive(process.Details{Argv: row.argv}); got != row.want {
			t.Errorf("%q: %v", row.argv, got)
		}
	}
}

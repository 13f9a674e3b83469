package neighbor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"slipway/installer/neighbor/record"
)

func TestRespawnedNeighbourIsReportedAndItsRecordDeleted(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx").mode("respawning").start()
	_, err := s.Stop(ctx, []Server{d.found(s)}, StopOptions{})
	if back := new(RespawnedError); !errors.As(err, &back) {
		t.Fatalf("error %v", err)
	}
	if list, _ := s.Pending(); len(list) != 0 || len(d.running()) != 1 {
		t.Errorf("pending %+v, running %v", list, d.running())
	}
}

func TestNeighbourUnderALoopIsRefusedAndTheLoopNamed(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx")
	loop := exec.Command("/bin/sh", append([]string{"-c", `while :; do "$@"; sleep 0.1; done`, "keeper"},
		d.argv()...)...)
	loop.Env = d.env
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { loop.Process.Kill(); loop.Wait(); d.killAll() }()
	d.listens()
	server := d.found(s)
	if server.Stoppable() || server.Starter.Type != "supervisor" ||
		!strings.Contains(server.Refusal, strconv.Itoa(loop.Process.Pid)) ||
		!strings.Contains(server.Refusal, "stop it there") {
		t.Errorf("starter %+v, refusal %q", server.Starter, server.Refusal)
	}
}

// service makes a job of the doubled launchd run the double, kept alive, and returns its label's folder.
func (d *double) service(s *System, manager, label string) string {
	d.t.Helper()
	services := d.t.TempDir()
	d.t.Setenv("DOUBLE_SERVICES", services)
	folder := filepath.Join(services, label)
	os.MkdirAll(folder, 0o700)
	plist := filepath.Join(d.folder, "A & B.plist")
	text := `<?xml version="1.0"?><plist version="1.0"><dict><key>ProgramArguments</key><array>`
	for _, arg := range d.argv() {
		text += "<string>" + arg + "</string>"
	}
	if err := os.WriteFile(plist, []byte(text+"</array></dict></plist>"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	os.WriteFile(filepath.Join(folder, "plist"), []byte(plist), 0o600)
	tool := program(d.t, manager)
	args := []string{"bootstrap", "gui/0", plist}
	if manager == "launchctl" {
		s.Launchctl = tool
		os.WriteFile(filepath.Join(s.Home, "launchctl"), []byte(tool), 0o600) // for the helper processes
	} else {
		s.Systemctl = tool
		args = []string{"--user", "start", label}
	}
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%v %s", err, out)
	}
	d.t.Cleanup(func() {
		b, _ := os.ReadFile(filepath.Join(folder, "supervisor"))
		if pid, _ := strconv.Atoi(string(b)); pid > 1 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	d.listens()
	return folder
}

func TestLaunchdJobIsStoppedAndStartedAsAJob(t *testing.T) {
	for label, channel := range map[string]record.Channel{"homebrew.mxcl.omlx": record.ChannelBrew,
		"com.example.omlx": record.ChannelLaunchd} {
		t.Run(label, func(t *testing.T) {
			s := newSystem(t)
			d := newDouble(t, "omlx")
			folder := d.service(s, "launchctl", label)
			server := d.found(s)
			if server.Channel != channel || server.Starter.Name != label || !strings.HasSuffix(server.Starter.Plist,
				"A & B.plist") {
				t.Fatalf("channel %q, starter %+v, refusal %q", server.Channel, server.Starter, server.Refusal)
			}
			// The owner kept alive: after a plain signal it would start a successor.
			records, err := s.Stop(ctx, []Server{server}, StopOptions{})
			if err != nil || len(d.running()) != 0 {
				t.Fatalf("%v, running %v", err, d.running())
			}
			// Bootstrap answers 5 three times, as launchd does for some seconds after a bootout.
			if o := s.restoreOne(ctx, records[0], nil); o.Result != Restored {
				t.Errorf("%+v", o)
			}
			if b, _ := os.ReadFile(filepath.Join(folder, "refusals")); string(b) != "0" {
				t.Errorf("bootstrap would refuse %s more times", b)
			}
			if again := d.found(s); again.Channel != channel {
				t.Errorf("it was restored as %+v", again.Starter)
			}
		})
	}
}

func TestSystemdUnitIsStoppedAndStartedAsAUnit(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "llama-server")
	d.service(s, "systemctl", "llama.service")
	server := d.found(s)
	// The test machine's control groups name no unit, so the group is a literal; the rest is real.
	const group = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/llama.service\n"
	server.Starter, _ = s.systemdStarter(ctx, group, server.PID)
	server.Refusal = ""
	s.decideChannel(ctx, &server)
	if server.Channel != record.ChannelSystemd {
		t.Fatalf("channel %q, refusal %q", server.Channel, server.Refusal)
	}
	records, err := s.Stop(ctx, []Server{server}, StopOptions{})
	if err != nil || len(d.running()) != 0 {
		t.Fatalf("%v, running %v", err, d.running())
	}
	if o := s.restoreOne(ctx, records[0], nil); o.Result != Restored || len(d.running()) != 1 {
		t.Errorf("%+v", o)
	}
	other, _ := s.systemdStarter(ctx, strings.Replace(group, "llama", "gnome-terminal-server", 1), server.PID)
	server.Starter, server.Refusal = other, ""
	if s.decideChannel(ctx, &server); server.Stoppable() ||
		!strings.Contains(server.Refusal, "main process is another one") {
		t.Errorf("in a terminal that is a unit: %q", server.Refusal)
	}
	server.Starter = Starter{Type: "systemd", Name: "llama.service", system: true}
	server.Refusal = ""
	if s.decideChannel(ctx, &server); server.Stoppable() ||
		!strings.Contains(server.Refusal, "sudo systemctl stop llama.service") {
		t.Errorf("a unit of the machine: %q", server.Refusal)
	}
}

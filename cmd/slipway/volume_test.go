package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/installer/plan"
)

// mount makes a small file system of its own, or skips with the reason.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a tmpfs cannot be mounted here (%v: %s): full and read-only volumes are not driven", err,
			strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	return dir
}

func TestSetupOnAVolumeThatIsTooSmallIsBlockedBeforeAnythingIsWritten(t *testing.T) {
	r := newRig(t)
	r.home = filepath.Join(mount(t, "size=8m"), "home")
	code, _, errOut := r.run(nil, r.setupArgs("--yes")...)
	if code != exitNoSpace || !strings.Contains(errOut, "free, and the plan needs") {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	if _, err := os.Lstat(r.home); err == nil {
		t.Fatal("a home was made")
	}
}

// The space goes while a plan is being carried out: the look before it saw enough.
func TestApplyOnAVolumeThatFillsUpKeepsWhatIsWholeAndContinues(t *testing.T) {
	r := newRig(t)
	small := mount(t, "size=4m,mode=755")
	r.home = filepath.Join(small, "home")
	at := installer.Environment{UserHome: r.dir, WorkingDir: r.dir, Executable: r.slip,
		PrebuiltDigest: installer.Digest(r.digest), Sources: machine.System(), Getenv: os.Getenv}
	prepared, err := installer.Prepare(t.Context(), installer.Input{Home: r.home, Request: plan.Request{Port: r.port}},
		at)
	if err != nil {
		t.Fatal(err)
	}
	_, err = apply.Run(t.Context(), prepared.Plan, prepared.Workers, apply.Options{Command: "test", Version: "test",
		Now: time.Now, Report: func(apply.Event) {}})
	if f := explain(err); f.Code != exitNoSpace {
		t.Fatalf("exit code %d, want %d: %v", f.Code, exitNoSpace, err)
	}
	final, err := filepath.Glob(filepath.Join(r.home, "models/slipway--pocket/*/model.safetensors"))
	if err != nil || len(final) != 0 {
		t.Fatalf("a file that is not whole has its final name: %v %v", final, err)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=200m", small).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, _, errOut := r.run(nil, r.setupArgs("--yes")...); code != 0 {
		t.Fatalf("with space again: %d\n%s", code, errOut)
	}
	r.run(nil, "down")
}

func TestSetupOnAReadOnlyVolume(t *testing.T) {
	r := newRig(t)
	volume := mount(t, "size=300m,mode=755")
	if out, err := exec.Command("mount", "-o", "remount,ro", volume).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.home = filepath.Join(volume, "home")
	for _, row := range []struct {
		args []string
		code int
	}{
		{r.setupArgs("--yes"), exitHuman},
		{r.setupArgs("--dry-run"), exitHuman},
		{[]string{"doctor"}, exitHuman},
	} {
		code, out, errOut := r.run(nil, row.args...)
		if code != row.code || !strings.Contains(out+errOut, "read-only") ||
			strings.Contains(out, "nothing is in the way") {
			t.Fatalf("%v: exit code %d\n%s%s", row.args, code, out, errOut)
		}
	}
}

func TestHomesOfOthersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another user: that refusal is not driven here")
	}
	r := newRig(t)
	for _, row := range []struct {
		name    string
		prepare func(home string) error
		says    string
	}{
		{"another owner", func(home string) error { return os.Chown(home, 12345, 12345) }, "another user"},
		{"group-writable", func(home string) error { return os.Chmod(home, 0o775) }, "written by others"},
	} {
		t.Run(row.name, func(t *testing.T) {
			home := filepath.Join(r.dir, row.name)
			if err := os.Mkdir(home, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := row.prepare(home); err != nil {
				t.Fatal(err)
			}
			code, _, errOut := r.run(nil, r.setupArgs("--yes", "--home", home)...)
			if code != exitHuman || !strings.Contains(errOut, row.says) {
				t.Fatalf("exit code %d\n%s", code, errOut)
			}
		})
	}
}

// As an ordinary user, a folder without permission to write.
func TestSetupWithoutPermissionToWriteChangesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user: the missing permission is not driven here")
	}
	r := newRig(t)
	parent := filepath.Join(r.dir, "closed")
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	for at := r.dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		flag string
		code int
	}{{"--yes", exitHuman}, {"--dry-run", exitHuman}} {
		cmd := r.command(nil, r.setupArgs(row.flag, "--home", filepath.Join(parent, "home"))...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
		said := &watched{}
		cmd.Stdout, cmd.Stderr = said, said
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != row.code || !strings.Contains(said.text(), "permission") {
			t.Fatalf("%s: exit code %d\n%s", row.flag, code, said.text())
		}
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Fatal(fmt.Sprint("left: ", left))
	}
}

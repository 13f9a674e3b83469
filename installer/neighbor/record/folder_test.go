package record

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/installer/process"
)

func valid() Record {
	return Record{Schema: Schema, ID: "mtplx-8000-812-1", Server: "mtplx", Title: "MTPLX", Channel: ChannelArgv,
		PID: 812, StartUS: 1, BootID: "b",
		Exe: "/x/mtplx", ExeInode: 3, Program: "/x/mtplx", ProgramSHA256: strings.Repeat("0", 64), Argv: []string{
			"mtplx", "serve"}, Cwd: "/", Env: map[string]string{"PATH": "/bin"},
		Port: 8000, Models: []Model{{ID: "m"}}, State: StateRecorded, At: time.Now()}
}

func TestRecordsThatCouldNotBeRestoredAreNotWritten(t *testing.T) {
	for name, spoil := range map[string]func(*Record){
		"no program":                func(r *Record) { r.Program = "" },
		"a relative program":        func(r *Record) { r.Program = "mtplx" },
		"no digest of the program":  func(r *Record) { r.ProgramSHA256 = "" },
		"no arguments":              func(r *Record) { r.Argv = nil },
		"a relative folder":         func(r *Record) { r.Cwd = "." },
		"no port":                   func(r *Record) { r.Port = 0 },
		"a port that is none":       func(r *Record) { r.Port = 70000 },
		"an ID that climbs":         func(r *Record) { r.ID = "../x" },
		"a hidden ID":               func(r *Record) { r.ID = ".x" },
		"no boot":                   func(r *Record) { r.BootID = "" },
		"a secret":                  func(r *Record) { r.Env["HF_TOKEN"] = "x" },
		"a password by any name":    func(r *Record) { r.Env["MTPLX_Passphrase"] = "x" },
		"a state of the future":     func(r *Record) { r.State = "resting" },
		"a channel of the future":   func(r *Record) { r.Channel = "telepathy" },
		"launchd without its plist": func(r *Record) { r.Channel, r.Label = ChannelLaunchd, "x" },
		"systemd without its unit":  func(r *Record) { r.Channel = ChannelSystemd },
		"unload without a model":    func(r *Record) { r.Channel, r.Models = ChannelUnload, nil },
	} {
		f := Folder{Home: privateHome(t)}
		r := valid()
		spoil(&r)
		if invalid := new(InvalidError); !errors.As(f.Write(r), &invalid) {
			t.Errorf("%s: it was written", name)
		}
	}
	f := Folder{Home: privateHome(t)}
	if err := f.Write(valid()); err != nil {
		t.Fatal(err)
	}
	if list, damaged := f.List(); len(list) != 1 || len(damaged) != 0 {
		t.Errorf("%v %v", list, damaged)
	}
}

func TestUpdateDoesNotRecreateADeletedRecord(t *testing.T) {
	f := Folder{Home: privateHome(t)}
	if err := f.Write(valid()); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(valid().ID); err != nil {
		t.Fatal(err)
	}
	if err := f.Update(valid()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("update: %v", err)
	}
	if list, _ := f.List(); len(list) != 0 {
		t.Errorf("%v", list)
	}
}

func TestLockOfADeletedFileGuardsNothing(t *testing.T) {
	f := Folder{Home: privateHome(t)}
	first, err := f.Lock(LockName("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := f.Lock(LockName("a")); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock: %v", err)
	}
	if held, err := f.Held(LockName("a")); err != nil || !held {
		t.Errorf("held %v, %v", held, err)
	}
	os.Remove(f.Path(LockName("a")))
	second, err := f.Lock(LockName("a"))
	if err != nil {
		t.Fatalf("after the file is gone: %v", err)
	}
	second.Close()
	if held, err := f.Held(LockName("a")); err != nil || held {
		t.Errorf("after the end: held %v, %v", held, err)
	}
}

func TestOnlyRunningProcessesAreHolders(t *testing.T) {
	f := Folder{Home: privateHome(t)}
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := process.Observe(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Hold(id); err != nil {
		t.Fatal(err)
	}
	other := id
	other.StartUS++ // a later process under the same pid
	if err := f.Hold(other); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(f.Path("hold-1-2"), []byte("{"), 0o600)
	if alive, err := f.Holders(true); err != nil || len(alive) != 1 || alive[0] != id {
		t.Errorf("alive %v, %v", alive, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if alive, err := f.Holders(false); err != nil || len(alive) != 0 {
		t.Errorf("after the end: %v, %v", alive, err)
	}
	if _, err := os.Stat(f.Path("hold-1-2")); err != nil {
		t.Error("a file that cannot be read was removed")
	}
}

func TestServerOfThisHomeHoldsByItsLock(t *testing.T) {
	f := Folder{Home: privateHome(t)}
	os.Mkdir(filepath.Join(f.Home, "run"), 0o700)
	path := filepath.Join(f.Home, "run", "server.lock")
	os.WriteFile(path, nil, 0o600)
	if alive, err := f.Holders(true); err != nil || len(alive) != 0 {
		t.Errorf("without a server: %v, %v", alive, err)
	}
	cmd := exec.Command("flock", "-F", path, "sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Skip("this machine has no flock(1): the lock of a living server was not tried")
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		alive, err := f.Holders(true)
		if err == nil && len(alive) == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("with a server: %v, %v", alive, err)
		}
	}
}

func TestSymbolicLinkInsteadOfTheFolderIsNotFollowed(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	os.Mkdir(filepath.Join(home, "state"), 0o700)
	if err := os.Symlink(elsewhere, filepath.Join(home, "state", "neighbors")); err != nil {
		t.Fatal(err)
	}
	f := Folder{Home: home}
	if err := f.Write(valid()); err == nil {
		t.Error("a record was written through a planted link")
	}
	if entries, _ := os.ReadDir(elsewhere); len(entries) != 0 {
		t.Errorf("files outside the home: %v", entries)
	}
}

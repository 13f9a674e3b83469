package apply

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"slipway/installer/plan"
	"slipway/installer/process"
)

func makeHome(t *testing.T) *Home {
	t.Helper()
	home, err := MakeHome(filepath.Join(t.TempDir(), "home"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	return home
}

func stamp() string { return "2026-01-01T00:00:00Z" }

// journalOf writes a journal of a begun plan with one finished action and one intent, and returns its bytes.
func journalOf(t *testing.T, home *Home, digest string) []byte {
	t.Helper()
	j, other, err := openJournal(home, Begun{Digest: digest}, stamp)
	if err != nil || other != nil {
		t.Fatal(other, err)
	}
	defer j.close()
	first := plan.Action{ID: "home", Touches: plan.Touches{Paths: []string{"."}}}
	for _, err := range []error{j.intent(first), j.result(first, []Item{{Kind: FileItem, Path: "a"}}),
		j.intent(plan.Action{ID: "model", Touches: plan.Touches{Paths: []string{"models/x"}}})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := home.Root.ReadFile(journalPath)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestJournalIsReadBackAfterEveryTear(t *testing.T) {
	home := makeHome(t)
	whole := journalOf(t, home, "sha256:a")
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for cut := 0; cut <= len(whole); cut++ {
		if err := home.Root.WriteFile(journalPath, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		records, end, err := readJournal(home)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if int(end) != len(bytes.Join(lines[:len(records)], nil)) || int(end) > cut {
			t.Fatalf("cut at %d: %d records end at %d", cut, len(records), end)
		}
	}
}

func TestJournalDamageIsSeenWhereverItIs(t *testing.T) {
	home := makeHome(t)
	whole := journalOf(t, home, "sha256:a")
	lines := bytes.SplitAfter(whole, []byte("\n"))
	damage := map[string][]byte{
		"a line is lost":         bytes.Join([][]byte{lines[0], lines[2], lines[3]}, nil),
		"two lines change place": bytes.Join([][]byte{lines[0], lines[2], lines[1], lines[3]}, nil),
		"the first line is lost": bytes.Join(lines[1:], nil),
		"a line is there twice":  bytes.Join([][]byte{lines[0], lines[1], lines[1], lines[2]}, nil),
		"garbage at the start":   append([]byte("garbage\n"), whole...),
		"zeros":                  append(make([]byte, 100), '\n'),
	}
	for at := 0; at < len(whole); at += 7 { // every seventh byte, each bit of it enough
		if whole[at] == '\n' {
			continue
		}
		changed := bytes.Clone(whole)
		changed[at] ^= 4
		damage["a bit of "+string(rune('0'+at%10))+" at "+time.Duration(at).String()] = changed
	}
	for name, data := range damage {
		if err := home.Root.WriteFile(journalPath, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := readJournal(home)
		var damaged *JournalError
		if !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := openJournal(home, Begun{Digest: "sha256:a"}, stamp); err == nil {
			t.Errorf("%s: was opened", name)
		}
		if after, _ := home.Root.ReadFile(journalPath); !bytes.Equal(after, data) {
			t.Errorf("%s: the damaged journal was changed", name)
		}
	}
}

// A plan that was abandoned for another one is in a receipt, so that uninstall finds what it made.
func TestAbandonedPlanIsInAReceipt(t *testing.T) {
	home := makeHome(t)
	digest := "sha256:" + strings.Repeat("a", 64)
	journalOf(t, home, digest)
	other := Begun{Digest: "sha256:" + strings.Repeat("b", 64)}
	j, records, err := openJournal(home, other, stamp)
	if err != nil || len(records) != 4 {
		t.Fatalf("%v %v", records, err)
	}
	defer j.close()
	if err := settle(home, j, records, other, Options{Version: "test", Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	receipt, err := home.Receipt(digest)
	if err != nil || receipt.Complete {
		t.Fatalf("%+v %v", receipt, err)
	}
	items, err := listedItems(home)
	if err != nil {
		t.Fatal(err)
	}
	paths := ""
	for _, item := range items {
		paths += item.Path + " "
	}
	if !strings.Contains(paths, "a ") || !strings.Contains(paths, "models/x ") {
		t.Fatalf("uninstall would not find %s", paths)
	}
	if open, err := OpenDigest(home); err != nil || open != other.Digest {
		t.Fatalf("open: %s %v", open, err)
	}
}

func TestResolveHome(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.MkdirAll("real/below", 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"real": "link", "nowhere": "dangling", "loop": "loop"} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"real": dir + "/real", "real/": dir + "/real", "./real/../real": dir + "/real", "link": dir + "/real",
		"link/below":   dir + "/real/below",
		"link/not/yet": dir + "/real/not/yet", "new": dir + "/new", "с пробелом й": dir + "/с пробелом й",
		"~": dir + "/real", "~/x": dir + "/real/x", dir + "/new//x/": dir + "/new/x",
	} {
		got, err := ResolveHome(path, dir+"/real")
		if err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", path, got, err, want)
		}
	}
	for _, path := range []string{"dangling", "dangling/x", "loop", "", "~", "~/x"} {
		if got, err := ResolveHome(path, ""); err == nil {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// The record decides where the file system has no locks, and it must tell the dead from the living.
func TestBusyDistinguishesADeadHolderFromALiveOne(t *testing.T) {
	home := makeHome(t)
	if home.Busy() != nil {
		t.Fatal("busy without a holder")
	}
	lock, err := home.Lock("test")
	if err != nil {
		t.Fatal(err)
	}
	if holder := home.Busy(); holder == nil || holder.Process.PID != os.Getpid() || holder.Command != "test" {
		t.Fatalf("%+v", holder)
	}
	var locked *LockedError
	if _, err := home.Lock("second"); !errors.As(err, &locked) || locked.Holder.Process.PID != os.Getpid() {
		t.Fatalf("%v", err)
	}
	lock.Release()
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*process.Identity){
		"another start": func(id *process.Identity) { id.StartUS++ },
		"another boot":  func(id *process.Identity) { id.BootID = "x" },
		"no such pid":   func(id *process.Identity) { id.PID = 1 << 30 },
	} {
		dead := self
		change(&dead)
		if err := home.writeHolder(Holder{Process: dead, Command: "dead"}); err != nil {
			t.Fatal(err)
		}
		if holder := home.Busy(); holder != nil {
			t.Errorf("%s: %+v is taken for living", name, holder)
		}
		lock, err := home.Lock("next")
		if err != nil || lock.DeadHolder == nil || lock.DeadHolder.Command != "dead" {
			t.Fatalf("%s: %+v %v", name, lock, err)
		}
		lock.Release()
	}
}

// Between taking the lock and noting who took it lies a moment, and the record of a dead holder may lie there still.
func TestLockedOutBeforeTheHolderIsNoted(t *testing.T) {
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		later func(home *Home, taken *flock.Flock) // while the second one waits
		check func(err error, holder Holder) bool
	}{
		{"it is noted a moment later", func(home *Home, _ *flock.Flock) {
			home.writeHolder(Holder{Process: self, Command: "first", Since: time.Now()})
		}, func(err error, holder Holder) bool { return err != nil && holder.Process.PID == os.Getpid() }},
		{"it lets go a moment later", func(_ *Home, taken *flock.Flock) { taken.Close() },
			func(err error, _ Holder) bool { return err == nil }},
		{"it is never noted", func(*Home, *flock.Flock) {},
			func(err error, holder Holder) bool {
				return err != nil && holder.Process.PID == 0 && strings.Contains(err.Error(), "not noted yet")
			}},
	} {
		t.Run(row.name, func(t *testing.T) {
			home, err := MakeHome(filepath.Join(t.TempDir(), "home"), "")
			if err != nil {
				t.Fatal(err)
			}
			defer home.Close()
			dead := self
			dead.PID = 1 << 30
			if err := home.writeHolder(Holder{Process: dead, Command: "dead"}); err != nil {
				t.Fatal(err)
			}
			taken := flock.New(filepath.Join(home.Path, lockPath))
			if got, err := taken.TryLock(); !got || err != nil {
				t.Fatal(got, err)
			}
			defer taken.Close()
			done := make(chan struct{})
			go func() { defer close(done); time.Sleep(100 * time.Millisecond); row.later(home, taken) }()
			lock, err := home.Lock("second")
			<-done
			var locked *LockedError
			if err != nil && !errors.As(err, &locked) {
				t.Fatal(err)
			}
			var holder Holder
			if locked != nil {
				holder = locked.Holder
			} else {
				lock.Release()
			}
			if !row.check(err, holder) {
				t.Fatalf("%v %+v", err, holder)
			}
		})
	}
}

func TestHomeThatIsKilledWhileItIsMadeLeavesNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ho[m]e")
	left := path + ".making-999999999"
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, plan.MarkerPath), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mine := path + ".making-notes"
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	home, err := MakeHome(path, "")
	if err != nil {
		t.Fatal(err)
	}
	home.Close()
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the half-made home stays")
	}
	if _, err := os.Lstat(mine); err != nil {
		t.Error("somebody's folder was taken for a half-made home")
	}
}

func TestReceiptPathsThatLeadOutAreNeverRemoved(t *testing.T) {
	home := makeHome(t)
	outside := filepath.Join(filepath.Dir(home.Path), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	forged := Receipt{SchemaVersion: 1, Digest: "sha256:" + strings.Repeat("c", 64),
		Actions: []Done{{ID: "model", Items: []Item{
			{Kind: FileItem, Path: "../outside"}, {Kind: FileItem, Path: outside}, {Kind: FolderItem, Path: ".."},
			{Kind: FolderItem, Path: "."},
			{Kind: FileItem, Path: "models/../../outside"}}}}}
	if err := home.writeReceipt(forged); err != nil {
		t.Fatal(err)
	}
	if _, err := Uninstall(t.Context(), home, false); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "mine" {
		t.Fatalf("%s %v", data, err)
	}
}

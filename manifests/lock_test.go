package manifests

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func lockOf(paths ...string) Lock {
	l := Lock{SchemaVersion: 1, Repo: "org/name", Revision: "0123456789abcdef0123456789abcdef01234567",
		Source: "a test"}
	for i, p := range paths {
		l.Files = append(l.Files, File{Path: p, Size: int64(i), SHA256: DigestOf([32]byte{byte(i)}), Proof: Unproven})
	}
	return l
}

func TestHostilePathsAreRefused(t *testing.T) {
	rows := map[string][]string{
		"absolute":                          {"/etc/passwd"},
		"climbs":                            {"../x"},
		"climbs inside":                     {"a/../../x"},
		"climbs at the end":                 {"a/.."},
		"dot":                               {"./a"},
		"dot inside":                        {"a/./b"},
		"empty":                             {""},
		"empty element":                     {"a//b"},
		"trailing slash":                    {"a/"},
		"backslash":                         {`a\b`},
		"backslash climbs":                  {`..\x`},
		"drive":                             {"C:x"},
		"NUL":                               {"a\x00b"},
		"newline":                           {"a\nb"},
		"escape":                            {"a\x1b[2Jb"},
		"delete":                            {"a\x7fb"},
		"right-to-left override":            {"a\u202etxt.json"},
		"zero-width space":                  {"config\u200b.json"},
		"byte-order mark":                   {"\ufeffconfig.json"},
		"not UTF-8":                         {"a\xffb"},
		"ends in a dot":                     {"a."},
		"ends in a space":                   {"a "},
		"git folder":                        {".git/config"},
		"git folder in capitals":            {"x/.GIT/config"},
		"our marker":                        {".slipway-home"},
		"long element":                      {strings.Repeat("a", 256)},
		"long path":                         {strings.Repeat("a/", 600) + "a"},
		"decomposed й":                      {"\u0438\u0306.json"},
		"twice":                             {"a", "a"},
		"case collision":                    {"A.json", "a.json"},
		"case collision in a folder":        {"A/x", "a/y", "a/X"},
		"case collision beyond ASCII":       {"СТР.json", "стр.json"},
		"sharp s and ss are one file":       {"stra\u00dfe", "strasse"},
		"file and folder":                   {"a", "a/b"},
		"file and folder by case":           {"A", "a/b/c"},
		"file and folder with one between":  {"a", "a-b", "a/b"},
		"not sorted":                        {"b", "a"},
		"sorted by bytes, not by character": {"a/b", "a-b"},
	}
	for name, paths := range rows {
		t.Run(name, func(t *testing.T) {
			l := lockOf(paths...)
			var fault *LockError
			if err := l.Validate(); !errors.As(err, &fault) {
				t.Errorf("Validate: %v, want a *LockError", err)
			} else if !strings.HasPrefix(fault.Field, "files") {
				t.Errorf("the error points to %s", fault.Field)
			}
		})
	}
}

func TestOrdinaryPathsAreAccepted(t *testing.T) {
	for _, p := range []string{"config.json", "model-00001-of-00002.safetensors", "mtp/weights.safetensors",
		".gitattributes",
		"a b.json", "имя/\u0439.json", "..a", "a..b", "中文.json"} {
		if err := ValidatePath(p); err != nil {
			t.Error(err)
		}
	}
}

func TestMarshalIsCanonical(t *testing.T) {
	l := lockOf("a&b.json", "c/<d>.json")
	l.LockedAt = time.Date(2026, 11, 29, 22, 0, 0, 0, time.UTC)
	first, err := l.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	shuffled := l
	shuffled.Files = []File{l.Files[1], l.Files[0]}
	second, err := shuffled.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the order of files changed the bytes")
	}
	if shuffled.Files[0].Path != "c/<d>.json" {
		t.Error("Marshal sorted the caller's slice")
	}
	back, err := ParseLock(first)
	if err != nil {
		t.Fatal(err)
	}
	third, err := back.Marshal()
	if err != nil || !bytes.Equal(first, third) {
		t.Errorf("parse and marshal changed the bytes (%v):\n%s\n%s", err, first, third)
	}
}

func TestDamagedLockIsRefused(t *testing.T) {
	good, err := lockOf("a.json").Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseLock(good); err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("fixture has no %q", old)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	rows := map[string]string{
		"empty":               "",
		"HTML":                "<html>not found</html>",
		"truncated":           string(good[:len(good)/2]),
		"second document":     string(good) + "{}",
		"array":               "[]",
		"null":                "null",
		"unknown key":         swap(`"source"`, `"sauce": "", "source"`),
		"key twice":           swap(`"repo": "org/name"`, `"repo": "org/name", "repo": "evil/name"`),
		"key in capitals":     swap(`"repo"`, `"Repo"`),
		"key twice in a file": swap(`"size": 0`, `"size": 0, "size": 5`),
		"newer schema":        swap(`"schema_version": 1`, `"schema_version": 2`),
		"branch for revision": swap("0123456789abcdef0123456789abcdef01234567", "main"),
		"negative size":       swap(`"size": 0`, `"size": -1`),
		"size in a string":    swap(`"size": 0`, `"size": "0"`),
		"size with fraction":  swap(`"size": 0`, `"size": 0.5`),
		"size beyond any":     swap(`"size": 0`, `"size": 9223372036854775807`),
		"short digest":        swap(`"sha256:00`, `"sha256:0`),
		"upper-case digest":   swap(`"sha256:00`, `"sha256:AA`),
		"digest without name": swap(`"sha256:0`, `"0`),
		"unknown proof":       swap(`"told"`, `"believed"`),
		"no files":            `{"schema_version":1,"repo":"org/name","revision":"0123456789abcdef0123456789abcdef01234567","source":"","files":[]}`,
		"escape in source":    swap(`"a test"`, `"a\u001b[2Jtest"`),
		"local time": swap(`"source": "a test",`,
			`"source": "a test", "locked_at": "2026-11-29T22:00:00+03:00",`),
		"deep nesting": strings.Repeat("[", 100000),
	}
	for name, text := range rows {
		t.Run(name, func(t *testing.T) {
			if l, err := ParseLock([]byte(text)); err == nil {
				t.Errorf("accepted: %+v", l)
			}
		})
	}
}

func FuzzParseLockNeverPanicsAndRoundTrips(f *testing.F) {
	good, _ := lockOf("a.json", "b/c.json").Marshal()
	f.Add(good)
	f.Add([]byte(`{"schema_version":1,"files":[{"path":"..\\x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLock(data)
		if err != nil {
			return
		}
		first, err := l.Marshal()
		if err != nil {
			t.Fatalf("parsed but not written: %v", err)
		}
		again, err := ParseLock(first)
		if err != nil {
			t.Fatalf("written but not parsed: %v", err)
		}
		second, err := again.Marshal()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("not canonical: %v", err)
		}
	})
}

// Guards against a changed Pocket file with an old lock, and against a new file that go:embed does not take.
func TestPocketLockIsCurrent(t *testing.T) {
	want, err := LockFolder(PocketRepo, "the files embedded in this program", Pocket())
	if err != nil {
		t.Fatal(err)
	}
	m, _ := ByID(PocketID)
	got, ok := BundledLock(m.Repo, m.Revision)
	if !ok {
		t.Fatalf("no bundled lock for %s@%s", m.Repo, m.Revision)
	}
	a, _ := got.Marshal()
	b, _ := want.Marshal()
	if !bytes.Equal(a, b) {
		t.Errorf("locks/pocket.lock.json is not that of the embedded files: run go generate ./manifests\n%s", b)
	}
	entries, err := os.ReadDir("pocket")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		if _, ok := got.File(entry.Name()); !ok {
			t.Errorf("pocket/%s is not embedded: extend the go:embed line, or keep it elsewhere", entry.Name())
		}
		if !m.Wants(entry.Name()) {
			t.Errorf("pocket.toml does not include pocket/%s", entry.Name())
		}
	}
	for _, f := range got.Files {
		if f.Proof != Embedded {
			t.Errorf("%s has proof %s", f.Path, f.Proof)
		}
	}
}

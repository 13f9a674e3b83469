package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/installer/process"
)

func privateHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestFolderThatOthersCouldFillIsRefused(t *testing.T) {
	for _, row := range []struct {
		name, why string
		make      func(t *testing.T, home string)
	}{
		{"the folder can be read", "mode 0755", func(t *testing.T, home string) { chmod(t, home, inHome, 0o755) }},
		{"the folder can be written", "mode 0777", func(t *testing.T, home string) { chmod(t, home, inHome, 0o777) }},
		{"the group can write", "mode 0720", func(t *testing.T, home string) { chmod(t, home, inHome, 0o720) }},
		{"the folder above can be written", "mode 0777", func(t *testing.T, home string) {
			chmod(t, home, "state", 0o777)
		}},
		{"the home can be written", "mode 0777", func(t *testing.T, home string) { chmod(t, home, ".", 0o777) }},
		{"the folder is a link to another", "is no folder", func(t *testing.T, home string) {
			if err := os.Rename(filepath.Join(home, inHome), filepath.Join(home, "other")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../other", filepath.Join(home, inHome)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := Folder{Home: privateHome(t)}
			if err := f.Write(valid()); err != nil {
				t.Fatal(err)
			}
			row.make(t, f.Home)
			_, listed := f.List()
			_, read := f.Read(valid().ID)
			_, locked := f.Lock("lock-x")
			_, held := f.Holders(false)
			errs := append([]error{read, locked, held, f.Write(valid()), f.Hold(process.Identity{PID: 1}),
				f.PutRestorer(os.Args[0], Sum{})}, listed...)
			if len(listed) != 1 {
				t.Errorf("list: %v", listed)
			}
			for i, err := range errs {
				unsafe := new(UnsafeError)
				if !errors.As(err, &unsafe) || !strings.Contains(err.Error(), row.why) || unsafe.Next == "" {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
}

func chmod(t *testing.T, home, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(filepath.Join(home, name), mode); err != nil {
		t.Fatal(err)
	}
}

func TestPlantedRestorerIsReplacedAndNeverRun(t *testing.T) {
	source := filepath.Join(t.TempDir(), "slipway")
	if err := os.WriteFile(source, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	want, err := SumOf(source)
	if err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(path string) error{
		"other bytes": func(path string) error {
			return os.WriteFile(path, []byte("#!/bin/sh\nevil\n"), 0o700)
		},
		"longer": func(path string) error {
			return os.WriteFile(path, []byte("#!/bin/sh\nexit 0\nevil\n"), 0o700)
		},
		"nothing":             func(path string) error { return os.WriteFile(path, nil, 0o700) },
		"a link to the same":  func(path string) error { return os.Symlink(source, path) },
		"others may write it": func(path string) error { return copyWithMode(source, path, 0o722) },
		"not executable":      func(path string) error { return copyWithMode(source, path, 0o600) },
		"it is not there":     func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := Folder{Home: privateHome(t)}
			if err := os.MkdirAll(filepath.Join(f.Home, inHome), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := plant(f.Path(Restorer)); err != nil {
				t.Fatal(err)
			}
			if f.HasRestorer(want) {
				t.Error("it was believed")
			}
			if err := f.PutRestorer(source, want); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(f.Path(Restorer))
			if err != nil || info.Mode() != 0o700 || !f.HasRestorer(want) {
				t.Errorf("afterwards: %v, %v", info, err)
			}
			if entries, _ := os.ReadDir(filepath.Dir(f.Path(Restorer))); len(entries) != 1 {
				t.Errorf("other files in its folder: %v", entries)
			}
			if b, err := os.ReadFile(source); err != nil || string(b) != "#!/bin/sh\nexit 0\n" {
				t.Errorf("the source now: %q, %v", b, err)
			}
		})
	}
	f := Folder{Home: privateHome(t)}
	if err := os.MkdirAll(f.Path(Restorer), 0o700); err != nil {
		t.Fatal(err)
	}
	if unsafe := new(UnsafeError); !errors.As(f.PutRestorer(source, want), &unsafe) {
		t.Error("a folder in its place was not refused")
	}
}

func copyWithMode(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, b, 0o700); err != nil {
		return err
	}
	return os.Chmod(to, mode)
}

func TestSecretNamesAreRecognised(t *testing.T) {
	for _, name := range []string{"HF_TOKEN", "MTPLX_API_KEY", "OLLAMA_BEARER", "OMLX_CRED", "HF_PWD", "DB_PASSWD",
		"MTPLX_AUTH", "X_PRIVATE", "GH_PAT", "aws_session", "SENTRY_DSN", "MTPLX_Passphrase", "cookie"} {
		if !Secret(name) {
			t.Errorf("%s is not recognised as a secret", name)
		}
	}
	for _, name := range []string{"PATH", "PWD", "OLDPWD", "HOME", "LANG", "VIRTUAL_ENV", "HF_HOME", "HF_HUB_CACHE",
		"OLLAMA_KEEP_ALIVE", "OLLAMA_HOST", "MTPLX_DEPTH", "OMLX_PORT"} {
		if Secret(name) {
			t.Errorf("%s is recognised as a secret", name)
		}
	}
}

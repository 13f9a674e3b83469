package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A home as the tools leave it: each keeps the model in its own layout, and from each alone all of it is taken, copied,
// and nothing there is touched.
func TestAdoptionFromTheFoldersOfOtherTools(t *testing.T) {
	lock := lockOf(t, sample)
	revision := string(lock.Revision)
	write := func(t *testing.T, name, data string) {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(data), 0o640))
	}
	plainly := func(folder string, extra map[string]string) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			for name, data := range sample {
				write(t, filepath.Join(home, folder, name), data)
			}
			for name, data := range extra {
				write(t, filepath.Join(home, folder, name), data)
			}
		}
	}
	hubCache := func(cache string) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			model := filepath.Join(home, cache, "models--org--name")
			write(t, filepath.Join(model, "refs/main"), revision)
			for _, f := range lock.Files {
				write(t, filepath.Join(model, "blobs", f.SHA256.Hex()), sample[f.Path])
				link := filepath.Join(model, "snapshots", revision, f.Path)
				must(t, os.MkdirAll(filepath.Dir(link), 0o755))
				must(t, os.Symlink(strings.Repeat("../", 2+strings.Count(f.Path, "/"))+"blobs/"+f.SHA256.Hex(), link))
			}
			// Another revision with a file of the same name and size, and an unfinished blob.
			other := filepath.Join(model, "snapshots", strings.Repeat("9", 40), "config.json")
			write(t, filepath.Join(model, "blobs", "aaaa"), `{"a":8}`)
			must(t, os.MkdirAll(filepath.Dir(other), 0o755))
			must(t, os.Symlink("../../blobs/aaaa", other))
			write(t, filepath.Join(model, "blobs", "bbbb.12345678.incomplete"), `{"a":9}`)
		}
	}
	for name, row := range map[string]struct {
		lay func(t *testing.T, home string)
		env map[string]string
	}{
		"MTPLX": {plainly(".mtplx/models/org--name",
			map[string]string{".mtplx-source.json": `{"repo_id":"org/name"}`}), nil},
		"LM Studio":              {plainly(".lmstudio/models/org/name", nil), nil},
		"LM Studio before 0.3.6": {plainly(".cache/lm-studio/models/org/name", nil), nil},
		"oMLX, by owner":         {plainly(".omlx/models/org/name", map[string]string{"README.md": "# a model"}), nil},
		"oMLX, flat":             {plainly(".omlx/models/name", nil), nil},
		"hub cache":              {hubCache(".cache/huggingface/hub"), nil},
		"hub cache, HF_HOME":     {hubCache("elsewhere/hub"), map[string]string{"HF_HOME": "elsewhere"}},
		"hub cache, XDG":         {hubCache("xdg/huggingface/hub"), map[string]string{"XDG_CACHE_HOME": "xdg"}},
	} {
		t.Run(name, func(t *testing.T) {
			user := t.TempDir()
			row.lay(t, user)
			getenv := func(name string) string {
				if row.env[name] == "" {
					return ""
				}
				return filepath.Join(user, row.env[name])
			}
			before := picture(t, user)
			home := openHome(t)
			found, busy := Find(context.Background(), lock, Sources("org/name", user, getenv))
			adopted, wrong, err := AdoptAll(context.Background(), home, lock, found)
			if err != nil || len(busy) != 0 {
				t.Fatalf("%v, busy %q", err, busy)
			}
			if len(wrong) != 0 {
				t.Errorf("a false alarm: %v", wrong)
			}
			if len(adopted) != 2 { // the empty file needs no source
				t.Fatalf("adopted %q", adopted)
			}
			folder, whole := WholeIn(lock, Sources("org/name", user, getenv))
			if !whole {
				t.Fatal("it could not be used in place")
			}
			must(t, Refer(context.Background(), home, lock, folder, nil))
			if report, err := VerifyInPlace(context.Background(), home, lock, true); err != nil || !report.OK() {
				t.Fatalf("%+v %v", report.Bad(), err)
			}
			if after := picture(t, user); after != before {
				t.Errorf("something of the user's was changed:\n%s\nwas\n%s", after, before)
			}
		})
	}
}

// picture is every name, mode, time and link below a folder.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			link, _ := os.Readlink(path)
			all.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + " " + link + "\n")
		}
		return err
	}))
	return all.String()
}

// A folder with something else that a server would read as a part of the model is copied from, never used as it lies.
func TestFolderWithMoreThanTheModelIsNotUsedInPlace(t *testing.T) {
	lock := lockOf(t, sample)
	for name, more := range map[string]string{"another config": "generation_config.json",
		"a template": "chat_template.jinja", "a pull in progress": ".mtplx-transfer.json"} {
		t.Run(name, func(t *testing.T) {
			dir, _ := foreignFolder(t, sample)
			if _, whole := WholeIn(lock, []string{dir}); !whole {
				t.Fatal("not even without it")
			}
			must(t, os.WriteFile(filepath.Join(dir, more), []byte("{}"), 0o600))
			if folder, whole := WholeIn(lock, []string{dir}); whole {
				t.Fatalf("%s would be used", folder)
			}
		})
	}
}

// Pipes in a model's folder: nothing waits for a writer.
func TestPipesInTheUsersFolderHangNothing(t *testing.T) {
	lock := lockOf(t, sample)
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "config.json"), 0o600))
	if found, _ := Find(context.Background(), lock, []string{dir}); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	if err := Adopt(context.Background(), openHome(t), lock, Candidate{"config.json",
		filepath.Join(dir, "config.json")}); err == nil {
		t.Error("a pipe was taken")
	}
	if err := Refer(context.Background(), openHome(t), lock, dir, nil); err == nil {
		t.Error("a pipe is used in place")
	}
}

// The space of a file counts as none only where a clone is certain to be possible.
func TestSpaceIsNotCountedForWhatCanBeCloned(t *testing.T) {
	lock := lockOf(t, sample)
	dir, _ := foreignFolder(t, sample)
	at, shares := volumeOf(dir)
	var names []string
	for _, f := range lock.Files {
		names = append(names, f.Path)
	}
	home := filepath.Join(t.TempDir(), "not", "there", "yet")
	got := ClonableBytes(context.Background(), home, lock, names, []string{dir})
	want := int64(0)
	if shares {
		want = lock.TotalBytes()
	}
	if got != want {
		t.Errorf("%d bytes, want %d (the volume %v shares blocks: %v)", got, want, at, shares)
	}
	if got := ClonableBytes(context.Background(), "/proc", lock, names, []string{dir}); got != 0 {
		t.Errorf("%d bytes across volumes", got)
	}
}

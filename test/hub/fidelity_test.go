package testhub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func sampleHub(t *testing.T) (*Server, *Repo) {
	t.Helper()
	s, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	repo, err := s.Add("org/model",
		File{Path: "model.safetensors", Content: Pattern(1, 3<<20), LFS: true},
		File{Path: "sub folder/вес.bin", Content: Pattern(2, 100_000), LFS: true},
		File{Path: "config.json", Content: Bytes([]byte(`{"model_type":"test"}`))},
		File{Path: "empty.txt", Content: Bytes(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return s, repo
}

// Someone else's client must be content with the test hub, or tests against it prove nothing.
func TestTheHubsOwnJavaScriptClient(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed: whether the hub's own client accepts the test hub is not checked in this run")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "check.mjs"} {
		data, err := os.ReadFile(filepath.Join("npm", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("the hub's own client cannot be installed here (%v): not checked in this run\n%s", err, out)
	}
	for name, row := range map[string]struct {
		gated bool
		pages int
	}{"public, in pages of two": {false, 2}, "gated, with the token": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			s, repo := sampleHub(t)
			repo.Gated, s.PageSize = row.gated, row.pages
			token := ""
			if row.gated {
				token = s.Token
			}
			cmd := exec.Command("node", "check.mjs", s.URL, repo.Name, string(repo.Revision), token)
			cmd.Dir = dir
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			var answer struct {
				SHA   string
				Files []struct {
					Path, LFS, ETag, SHA256, Middle string
					Size, InfoSize                  int64
				}
			}
			if err := json.Unmarshal(out, &answer); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if answer.SHA != string(repo.Revision) || len(answer.Files) != len(repo.files) {
				t.Fatalf("%s", out)
			}
			for _, f := range answer.Files {
				want, ok := repo.file(f.Path)
				if !ok {
					t.Fatalf("it lists %q", f.Path)
				}
				if f.Size != want.Content.Size() || f.InfoSize != f.Size || f.SHA256 != want.sha256 {
					t.Errorf("%+v, want %d bytes of %s", f, want.Content.Size(), want.sha256)
				}
				if want.LFS && (f.LFS != want.sha256 || strings.Trim(f.ETag, `"`) != want.sha256) {
					t.Errorf("%s: lfs %q, etag %q", f.Path, f.LFS, f.ETag)
				}
				if f.Middle != "" {
					part := make([]byte, 6)
					want.Content.ReadAt(part, 3)
					sum := sha256.Sum256(part)
					if f.Middle != hex.EncodeToString(sum[:]) {
						t.Errorf("%s: a part in the middle is another one", f.Path)
					}
				}
			}
		})
	}
}

func TestGitItselfClonesPointers(t *testing.T) {
	s, repo := sampleHub(t)
	dir := filepath.Join(t.TempDir(), "clone")
	run := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_LFS_SKIP_SMUDGE=1", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("-c", "filter.lfs.smudge=", "-c", "filter.lfs.required=false", "clone", "-q", s.URL+"/"+repo.Name, dir)
	if head := run("-C", dir, "rev-parse", "HEAD"); head != string(repo.Revision) {
		t.Errorf("head is %s, want %s", head, repo.Revision)
	}
	run("-C", dir, "fsck", "--strict")
	pointer, err := os.ReadFile(filepath.Join(dir, "sub folder", "вес.bin"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := repo.file("sub folder/вес.bin")
	if !strings.Contains(string(pointer), "oid sha256:"+want.sha256+"\nsize 100000\n") {
		t.Errorf("the pointer is %q", pointer)
	}
	small, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil || string(small) != `{"model_type":"test"}` {
		t.Errorf("%q %v", small, err)
	}
	fetched := filepath.Join(t.TempDir(), "one")
	run("init", "-q", fetched)
	run("-C", fetched, "fetch", "-q", "--depth", "1", s.URL+"/"+repo.Name, string(repo.Revision))
}

func TestRangesAsCurlWouldSeeThem(t *testing.T) {
	s, repo := sampleHub(t)
	want, _ := repo.file("model.safetensors")
	get := func(header ...string) *http.Response {
		request, err := http.NewRequest("GET", s.URL+"/"+repo.Name+"/resolve/"+string(repo.Revision)+
			"/model.safetensors", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	etag := `"` + want.sha256 + `"`
	rows := map[string]struct {
		header []string
		status int
		rng    string
		bytes  int
	}{
		"whole":                {nil, 200, "", 3 << 20},
		"from the middle":      {[]string{"Range", "bytes=100-"}, 206, "bytes 100-3145727/3145728", 3<<20 - 100},
		"a part":               {[]string{"Range", "bytes=100-199"}, 206, "bytes 100-199/3145728", 100},
		"beyond the end":       {[]string{"Range", "bytes=3145728-"}, 416, "bytes */3145728", 0},
		"if the validator is":  {[]string{"Range", "bytes=0-9", "If-Range", etag}, 206, "bytes 0-9/3145728", 10},
		"if it is another":     {[]string{"Range", "bytes=0-9", "If-Range", `"x"`}, 200, "", 3 << 20},
		"longer than the file": {[]string{"Range", "bytes=3145720-9999999"}, 206, "bytes 3145720-3145727/3145728", 8},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			answer := get(row.header...)
			body, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != row.status || answer.Header.Get("Content-Range") != row.rng ||
				len(body) != row.bytes {
				t.Errorf("%d %q %d bytes", answer.StatusCode, answer.Header.Get("Content-Range"), len(body))
			}
		})
	}
}

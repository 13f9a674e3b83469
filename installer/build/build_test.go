package build

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The source's digest must cover everything that goes into the server: each package that it imports from this module
// is below a hashed root.
func TestSourceRootsCoverEveryPackageOfTheServer(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", serverPackage)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	ours := 0
	for _, pkg := range strings.Fields(string(out)) {
		path, ok := strings.CutPrefix(pkg, "slipway/")
		if !ok {
			continue
		}
		ours++
		if !slices.ContainsFunc(sourceRoots, func(root string) bool {
			return path == root ||
				strings.HasPrefix(path, root+"/")
		}) {
			t.Errorf("%s goes into the server and not into the source's digest", path)
		}
	}
	if ours < 3 {
		t.Fatalf("only %d packages of ours", ours)
	}
}

// tree writes a small source tree and returns its folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func smallSource() map[string]string {
	return map[string]string{
		"go.mod": "module slipway\n\ngo 1.26.0\n",
		"cmd/slipway-server/main.go": "package main\n\nimport (\n\t\"os\"\n\n\t\"slipway/engine\"\n)\n\nfunc " +
			"main() { os.Stdout.WriteString(engine.Word) }\n",
		"engine/word.go":                 "package engine\n\nconst Word = \"hello\"\n",
		"engine/word_test.go":            "package engine\n",
		"engine/testdata/x.json":         "{}",
		"engine/.word.go.swp":            "editor",
		"installer/other.go":             "package installer\n",
		"cmd/slipway-server/_scratch.go": "package main\n",
	}
}

func TestSourceDigestFollowsWhatIsBuiltAndNothingElse(t *testing.T) {
	digestWith := func(name, text string) string {
		files := smallSource()
		if name != "" {
			files[name] = text
		}
		s, err := FindSource(tree(t, files), "", "")
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Digest)
	}
	base := digestWith("", "")
	for _, name := range []string{"engine/word_test.go", "engine/testdata/x.json", "engine/.word.go.swp",
		"installer/other.go", "README.md", "cmd/slipway-server/_scratch.go"} {
		if digestWith(name, "changed") != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	for _, name := range []string{"engine/word.go", "engine/new.go", "engine/kernels/k.s", "cmd/slipway-server/main.go",
		"go.mod", "go.sum", "profiles/exact.toml", "metal/a.metal"} {
		if digestWith(name, "module slipway\ngo 1.26.1\n// changed") == base {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestFindSource(t *testing.T) {
	source, other := tree(t, smallSource()), t.TempDir()
	below := filepath.Join(source, "engine", "testdata")
	for _, row := range []struct {
		name, named, recorded, working string
		want                           string // "" is ErrNoSource
	}{
		{"named", source, "", "", source},
		{"named and none there", other, source, source, ""},
		{"recorded", "", source, other, source},
		{"recorded by -trimpath", "", "slipway/cmd/slipway", source, source},
		{"recorded and gone", "", filepath.Join(other, "gone"), below, source},
		{"working folder below it", "", "", below, source},
		{"nowhere", "", "", other, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := FindSource(row.named, row.recorded, row.working)
			if row.want == "" {
				if !errors.Is(err, ErrNoSource) {
					t.Fatalf("%+v %v", s, err)
				}
				return
			}
			if err != nil || s.Dir != row.want || s.GoVersion != "1.26.0" {
				t.Fatalf("%+v %v", s, err)
			}
		})
	}
}

func TestBuiltTwiceIsTheSameBytes(t *testing.T) {
	tools, err := FindGo(t.Context(), os.Getenv("PATH"), "1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	target := runtime.GOOS + "/" + runtime.GOARCH
	t.Setenv("GOFLAGS", "-tags=surprise -ldflags=-w") // must not reach the build
	var sums []string
	for range 2 {
		source, err := FindSource(tree(t, smallSource()), "", "") // another folder each time
		if err != nil {
			t.Fatal(err)
		}
		out, err := Server(t.Context(), source, tools, target)
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(out.Dir)
		sums = append(sums, string(out.SHA256))
		if word, err := exec.Command(out.Path).Output(); err != nil || string(word) != "hello" {
			t.Fatalf("%s %v", word, err)
		}
	}
	if sums[0] != sums[1] {
		t.Fatalf("two builds: %v", sums)
	}
}

func TestBuildFailureCarriesTheCompilersWords(t *testing.T) {
	tools, err := FindGo(t.Context(), os.Getenv("PATH"), "1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	files := smallSource()
	files["engine/word.go"] = "package engine\n\nconst Word = missing\n"
	source, err := FindSource(tree(t, files), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Server(t.Context(), source, tools, runtime.GOOS+"/"+runtime.GOARCH)
	var failed *FailedError
	if !errors.As(err, &failed) || !strings.Contains(failed.Output, "undefined: missing") {
		t.Fatalf("%v", err)
	}
}

func TestFindGo(t *testing.T) {
	dir := t.TempDir()
	install := func(name, version string) string {
		bin := filepath.Join(dir, name, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		// A go command that must not be run: it says so by leaving a file.
		script := "#!/bin/sh\ntouch " + filepath.Join(dir, "was-run") + "\n"
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "VERSION"), []byte(version+"\ntime 2026-01-01\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		return bin
	}
	old, good, newer := install("old", "go1.19.8"), install("good", "go1.26.0"), install("newer", "go1.27rc1")
	shims := filepath.Join(dir, "mise", "shims")
	if err := os.MkdirAll(shims, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(good, "go"), filepath.Join(shims, "go")); err != nil {
		t.Fatal(err)
	}
	var tooOld *OldGoError
	for _, row := range []struct {
		name, path, want string // "" with tooOld or ErrNoGo
		old              bool
	}{
		{"first that is new enough", old + ":" + good + ":" + newer, "go1.26.0", false},
		{"a release candidate counts as its release", newer, "go1.27rc1", false},
		{"only an old one", old, "", true},
		{"only a shim", shims, "", false},
		{"nothing", dir, "", false},
		{"a relative folder is not looked at", "good/bin", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			tools, err := FindGo(t.Context(), row.path, "1.26.0")
			switch {
			case row.want != "":
				if err != nil || tools.Version != row.want {
					t.Fatalf("%+v %v", tools, err)
				}
			case row.old:
				if !errors.As(err, &tooOld) {
					t.Fatalf("%v", err)
				}
			case !errors.Is(err, ErrNoGo):
				t.Fatalf("%v", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "was-run")); err == nil {
		t.Fatal("a go command was run to learn its version")
	}
}

func TestSweepRemovesOnlyWhatKilledBuildsLeft(t *testing.T) {
	dir := t.TempDir()
	gone, live := fmt.Sprintf("%s%d-1", temporaryPrefix, 1<<30), fmt.Sprintf("%s%d-1", temporaryPrefix, os.Getpid())
	for _, name := range []string{gone, live, temporaryPrefix + "notes", "other-1-1"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, fmt.Sprintf("%s%d-2", temporaryPrefix, 1<<30))); err != nil {
		t.Fatal(err)
	}
	sweep(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Fatalf("%v %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
		t.Fatal("the killed build's folder stays")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Fatal("a link was followed")
	}
}

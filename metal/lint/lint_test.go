package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway/metal/cpurun"
	"slipway/metal/kernels"
	"slipway/metal/lint"
)

func clang(t *testing.T) string {
	cpurun.Need(t)
	path, err := exec.LookPath("clang++-22")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKernelsPassTheLint(t *testing.T) {
	path := clang(t)
	for _, name := range kernels.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := lint.AddressSpaces(t.TempDir(), path, name+".metal", kernels.Source(name))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(found, lint.Rules(name+".metal", kernels.Source(name))...) {
				t.Error(f)
			}
		})
	}
}

// Each bad file names, on its bad lines, what must be found there, and by which of the two passes.
func TestBadSourcesAreReported(t *testing.T) {
	path := clang(t)
	files, err := filepath.Glob("testdata/*.metal")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad sources: %v", err)
	}
	want := regexp.MustCompile(`// want (rule|space): (.*)$`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			spaces, err := lint.AddressSpaces(t.TempDir(), path, "bad.metal", "#include <metal_stdlib>\nusing "+
				"namespace metal;\n#line 1 \"bad.metal\"\n"+text)
			if err != nil {
				t.Fatal(err)
			}
			rules := lint.Rules("bad.metal", text)
			lines := strings.Split(text, "\n")
			for _, f := range rules {
				if !want.MatchString(lines[f.Line-1]) {
					t.Errorf("found where nothing is wrong: %v", f)
				}
			}
			for i, line := range lines {
				m := want.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				found := rules
				if m[1] == "space" {
					found = spaces
				}
				if !has(found, i+1, m[2]) {
					t.Errorf("line %d: wanted %q among %v", i+1, m[2], found)
				}
			}
		})
	}
}

func has(found []lint.Finding, line int, what string) bool {
	for _, f := range found {
		if f.Line == line && strings.Contains(f.What, what) {
			return true
		}
	}
	return false
}

package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A hand edit of the assembly, or a generator that was changed and not run.
func TestAssemblyIsWhatTheGeneratorWrites(t *testing.T) {
	cmd := exec.Command("go", "run", "-C", "gen", ".", "-check", "-dir", "..")
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err == nil:
	case strings.Contains(text, "module lookup disabled") || strings.Contains(text, "executable file not found") ||
		len(out) == 0:
		if os.Getenv("CI") == "true" {
			t.Fatalf("the generator cannot be built; run go mod download in engine/device/cpu/kernels/gen first: %v %s",
				err, text)
		}
		t.Skipf("the generator cannot be built here (its module avo is not in the module cache; go mod download in "+
			"gen fetches it): %v %s", err, text)
	default:
		t.Fatalf("%v\n%s", err, text)
	}
}

// One legacy SSE instruction between AVX instructions, or a return with dirty upper halves, costs more than the whole
// kernel.
func TestAssemblyUsesNoLegacySSE(t *testing.T) {
	files, err := filepath.Glob("*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly found: %v", err)
	}
	vector := regexp.MustCompile(`\b[XYZ][0-9]+\b`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for i, line := range strings.Split(string(text), "\n") {
			line, _, _ = strings.Cut(line, "//")
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasSuffix(words[0], ":") {
				continue
			}
			if vector.MatchString(line) && !strings.HasPrefix(words[0], "V") {
				t.Errorf("%s:%d: legacy SSE: %s", f, i+1, line)
			}
			if words[0] == "RET" && last != "VZEROUPPER" {
				t.Errorf("%s:%d: returns without VZEROUPPER", f, i+1)
			}
			last = words[0]
		}
	}
}

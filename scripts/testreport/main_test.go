package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The input comes from the real go test: a skip in a package that passes, a failure, a package that does not compile.
func TestReportKeepsSkipsAndFailures(t *testing.T) {
	for name, row := range map[string]struct {
		body string
		good bool
		says []string
	}{
		"skipped": {`t.Skip("no such tool here")`, true, []string{"ok  \tm", "skipped: m Test: ", "no such tool here"}},
		"passed":  {`t.Log("x")`, true, []string{"ok  \tm"}},
		"failed":  {`t.Error("it is wrong")`, false, []string{"it is wrong", "FAIL\tm"}},
		"broken":  {`undefined()`, false, []string{"undefined: undefined", "FAIL\tm"}},
		"ended":   {`panic("gone")`, false, []string{"panic: gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n",
				"m_test.go": "package m\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { " + row.body + " }\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "test", "-json", "./...")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
			events, _ := cmd.Output()
			var out strings.Builder
			if good := report(strings.NewReader(string(events)), &out); good != row.good {
				t.Errorf("good is %v\n%s", good, out.String())
			}
			for _, part := range row.says {
				if !strings.Contains(out.String(), part) {
					t.Errorf("no %q in\n%s", part, out.String())
				}
			}
		})
	}
}

func TestPackageWithoutEndIsAFailure(t *testing.T) {
	if report(strings.NewReader(`{"Action":"start","Package":"m"}`+"\n"), &strings.Builder{}) {
		t.Error("a package that never ended counts as passed")
	}
}

func TestReportListsTheTenSlowestTests(t *testing.T) {
	var in strings.Builder
	for i := range 12 {
		fmt.Fprintf(&in, `{"Action":"pass","Package":"m","Test":"Test%02d","Elapsed":%d}`+"\n", i, i)
	}
	var out strings.Builder
	if !report(strings.NewReader(in.String()), &out) {
		t.Fatalf("a run that passed counts as failed:\n%s", out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 10 || lines[0] != "slow:   11.0 s m Test11" || lines[9] != "slow:    2.0 s m Test02" {
		t.Errorf("not the ten slowest, slowest first:\n%s", out.String())
	}
}

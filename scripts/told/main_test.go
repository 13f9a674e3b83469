package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A skip in a package that passes, a failure, and a package that does not compile, from the real go test.
func TestSkipsAreToldAndFailuresAreNotLost(t *testing.T) {
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
			for file, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "m_test.go": "package m\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { " + row.body + " }\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "test", "-json", "./...")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
			events, _ := cmd.Output()
			var out strings.Builder
			if good := tell(strings.NewReader(string(events)), &out); good != row.good {
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

func TestInputThatEndsTooEarlyIsAFailure(t *testing.T) {
	if tell(strings.NewReader(`{"Action":"start","Package":"m"}`+"\n"), &strings.Builder{}) {
		t.Error("a package that never ended counts as passed")
	}
}

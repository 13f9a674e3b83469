package sdk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The clients for Node run a tool loop on each wire.
func TestNodeClientsRunToolLoops(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "clients.mjs"} {
		data, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command("npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("the clients cannot be installed (%v); make need installs npm, and the registry must be reachable\n%s",
			err, out)
	}
	run := exec.Command("node", "clients.mjs", address)
	run.Dir, run.Stderr = dir, os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	var results map[string]struct {
		Cities, Capabilities []string
		Said, Stop, Refused  string
		Streamed, Thinking   bool
	}
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, wire := range []string{"runTools", "responses", "anthropic", "ollama"} {
		r := results[wire]
		if !slices.Equal(r.Cities, []string{"Paris"}) || !strings.Contains(r.Said, "sunny") ||
			!strings.Contains(r.Said, "21") {
			t.Errorf("%s: %+v", wire, r)
		}
	}
	if r := results["anthropic"]; r.Stop != "tool_use" || !r.Thinking || r.Refused != "NotFoundError 404" {
		t.Errorf("anthropic: %+v", r)
	}
	if !results["responses"].Streamed || !slices.Contains(results["ollama"].Capabilities, "tools") {
		t.Errorf("%s", out)
	}
}

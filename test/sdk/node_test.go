package sdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// nodeFolder is a folder with the clients for Node, installed once.
var nodeFolder = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "slipway-sdk-node-")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS("node")); err != nil {
		return dir, err
	}
	install := exec.Command("npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("the clients cannot be installed (%v); make need installs npm, and the registry must be "+
			"reachable\n%s", err, out)
	}
	return dir, nil
})

// runNode runs one of the programs against the server and decodes what it prints.
func runNode(t *testing.T, program string, into any) {
	t.Helper()
	dir, err := nodeFolder()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command("node", program, address)
	run.Dir, run.Stderr = dir, os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	t.Logf("%s", out)
}

// The clients for Node run a tool loop on each wire.
func TestNodeClientsRunToolLoops(t *testing.T) {
	var results map[string]struct {
		Cities, Capabilities []string
		Said, Stop, Refused  string
		Streamed, Thinking   bool
	}
	runNode(t, "clients.mjs", &results)
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
		t.Errorf("%+v", results)
	}
}

// The AI SDK runs a tool within a stream, and it and LangChain get objects that fulfil their schemas, whatever the
// model would have said.
func TestFrameworksGetWhatTheirSchemasSay(t *testing.T) {
	type object struct {
		City, Sky string
		Celsius   *int
	}
	var results struct {
		StreamText struct {
			Cities         []string
			Said, Streamed string
			Steps          int
		}
		GenerateObject struct {
			Object object
			Stop   string
		}
		WithStructuredOutput struct{ Object object }
	}
	runNode(t, "frameworks.mjs", &results)
	if r := results.StreamText; !slices.Equal(r.Cities, []string{"Paris"}) || r.Steps != 2 || r.Said == "" ||
		!strings.HasSuffix(r.Streamed, r.Said) {
		t.Errorf("streamText: %+v", r)
	}
	for name, o := range map[string]object{"generateObject": results.GenerateObject.Object,
		"withStructuredOutput": results.WithStructuredOutput.Object} {
		if o.Sky != "sunny" && o.Sky != "cloudy" || o.Celsius == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if results.GenerateObject.Stop != "stop" {
		t.Errorf("%+v", results.GenerateObject)
	}
}

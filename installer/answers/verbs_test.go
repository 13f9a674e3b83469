package answers

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/installer/operate"
)

// pocket is a request for the embedded model that starts nothing.
const pocket = `{"model": "pocket"}`

// patient is a server of the home, which is not there.
const patient = `"server": {"patience_ns": 1000000000}`

// walk is a call of every verb in a folder without a home, by a caller without a terminal, and the class that it comes
// to. yields says that an answer comes without an error.
var walk = map[string]struct {
	input  string
	class  fault.Class
	yields bool
}{
	"setup":                 {pocket, fault.Consent, false},
	"setup --dry-run":       {pocket, fault.ChangesPending, true},
	"doctor":                {pocket, fault.ChangesPending, true},
	"plan":                  {pocket, fault.ChangesPending, true},
	"apply":                 {`{"file": "e30=", "digest": "sha256:0"}`, fault.Stale, false},
	"apply --detach":        {`{"file": "e30=", "digest": "sha256:0", "plan": "/nowhere"}`, fault.Stale, false},
	"wait":                  {`{"limit_ns": 1}`, fault.NotReady, false},
	"up":                    {`{"profile": "exact"}`, fault.NotReady, false},
	"upgrade":               {`{"yes": true}`, fault.NotReady, false},
	"down":                  {``, fault.NotReady, false},
	"status":                {``, fault.NotReady, true},
	"logs":                  {`{"lines": 1}`, fault.NotReady, false},
	"ask":                   {`{"question": "Hello", "max_tokens": 1}`, fault.NotReady, false},
	"verify":                {`{"deep": true}`, fault.NotReady, false},
	"uninstall":             {`{"yes": true}`, fault.NotReady, false},
	"connect":               {`{"client": "` + operate.Clients()[0] + `"}`, fault.OK, true},
	"models list":           {``, fault.OK, true},
	"models lock":           {pocket, fault.Usage, false},
	"gc":                    {`{"dry_run": true}`, fault.NotReady, false},
	"cache show":            {``, fault.NotReady, false},
	"cache clear":           {`{"yes": true}`, fault.NotReady, false},
	"bundle export":         {`{"out": "/nowhere/bundle"}`, fault.NotReady, false},
	"bundle import":         {`{"in": "/nowhere/bundle"}`, fault.Usage, false},
	"neighbors":             {`{"name": "no such kind"}`, fault.OK, true},
	"restore":               {`{"dry_run": true}`, fault.OK, true},
	"measure":               {`{` + patient + `, "max_tokens": 1, "repeat": 1}`, fault.NotReady, false},
	"measure --draft-sweep": {`{` + patient + `, "max_tokens": 32, "keep": true}`, fault.NotReady, false},
	"check needle":          {`{` + patient + `, "samples": 1, "max_tokens": 1, "codes": 1}`, fault.NotReady, false},
	"check ruler":           {`{` + patient + `, "samples": 1, "max_tokens": 1}`, fault.NotReady, false},
	"check cache":           {`{` + patient + `, "samples": 1, "max_tokens": 1, "tokens": 300}`, fault.NotReady, false},
	"check tools":           {`{` + patient + `, "samples": 1, "max_tokens": 1}`, fault.NotReady, false},
	"check compare":         {`{"file_a": "/nowhere/a.jsonl", "file_b": "/nowhere/b.jsonl"}`, fault.Usage, false},
	"check all":             {`{` + patient + `, "max_tokens": 1, "quick": true}`, fault.NotReady, false},
	"agent prompt":          {`{"language": "en", "command": "slipway"}`, fault.OK, true},
	"version":               {``, fault.OK, true},
	"schema":                {`{"verb": "status"}`, fault.OK, true},
}

func operatorOf(t *testing.T, home string) *operate.Operator {
	t.Helper()
	source, err := filepath.Abs("../../cmd/slipway/testdata/source")
	if err != nil {
		t.Fatal(err)
	}
	return &operate.Operator{Version: "test", Home: home, Verb: "test",
		Environment: installer.Environment{UserHome: filepath.Dir(home), WorkingDir: source, RecordedSource: source,
			ToolPath: os.Getenv("PATH"), Executable: filepath.Join(source, "slipway"), Sources: machine.System(),
			Getenv: os.Getenv},
		Caller: operate.Caller{Say: func(string) {}, Report: func(apply.Event) {},
			ShowPlan: func(installer.Prepared) {},
			Agree: func(context.Context, operate.Question) (operate.Reply, error) {
				return operate.NotAsked, nil
			},
			Command: func(words ...string) []string { return append([]string{"slipway"}, words...) }}}
}

// An MCP server, or any other program, has no terminal, and knows a verb by its name and its JSON alone.
func TestEveryVerbIsCalledByNameWithoutATerminal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	for _, name := range Verbs() {
		c, found := walk[name]
		if !found {
			t.Errorf("%s: a verb without a call in this test", name)
			continue
		}
		answer, err := Call(t.Context(), operatorOf(t, home), name, []byte(c.input))
		class := fault.OK
		if f, _ := fault.Of(err); err != nil {
			class = f.Class
		} else if a, ok := answer.(interface{ Class() fault.Class }); ok {
			class = a.Class()
		}
		if (err == nil) != c.yields || class != c.class {
			t.Errorf("%s: %v, %v; wanted %v", name, class, err, c.class)
		}
		if reflect.TypeOf(answer) != reflect.TypeOf(verbs[name].answer) {
			t.Errorf("%s: the answer is %T, and the schema is of %T", name, answer, verbs[name].answer)
		}
		if _, err := json.Marshal(answer); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(home); err == nil {
			t.Fatalf("%s: a home was made", name)
		}
	}
	if len(walk) != len(Verbs()) {
		t.Errorf("%d calls of %d verbs", len(walk), len(Verbs()))
	}
}

// A field that a verb does not know is never ignored, and what it knows is in its schema.
func TestInputsAreReadStrictlyAndHaveASchema(t *testing.T) {
	dir := t.TempDir()
	for _, name := range Verbs() {
		for _, input := range []string{`{"no_such_field": 1}`, `[]`, `{} {}`} {
			_, err := Call(t.Context(), operatorOf(t, dir+"/home"), name, []byte(input))
			if f, _ := fault.Of(err); err == nil || f.Class != fault.Usage {
				t.Errorf("%s takes %s: %v", name, input, err)
			}
		}
		schema, err := InputSchema(name)
		if err != nil {
			t.Fatal(err)
		}
		var given map[string]any
		if input := walk[name].input; input != "" {
			if err := json.Unmarshal([]byte(input), &given); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for field := range given {
			if _, known := schema["properties"].(map[string]any)[field]; !known {
				t.Errorf("%s: %s is not in its schema", name, field)
			}
		}
	}
	if _, err := Call(t.Context(), operatorOf(t, dir+"/home"), "no such verb", nil); err == nil {
		t.Error("a verb that does not exist was called")
	}
}

// A document of a caller without a terminal holds what the command line prints: the code, the sentence and the next
// step, as the caller writes commands.
func TestDocumentOfACallByNameNamesTheNextStep(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	d := Document(t.Context(), operatorOf(t, home), "up", nil)
	if d.OK || d.Data != nil || d.Error == nil || d.Error.Code != "not-ready" ||
		d.Meta.ExitCode != int(fault.NotReady) ||
		!reflect.DeepEqual(d.Error.Next, []string{"slipway", "setup"}) || d.Meta.Command != "up" {
		t.Errorf("up of nothing: %+v, %+v", d, d.Error)
	}
	d = Document(t.Context(), operatorOf(t, home), "status", nil)
	if !d.OK || d.Error != nil || d.Meta.ExitCode != int(fault.NotReady) || d.SchemaVersion != SchemaVersion {
		t.Errorf("status of nothing: %+v", d)
	}
	d = Document(t.Context(), operatorOf(t, home), "no such verb", nil)
	if d.OK || d.Error == nil || d.Error.Code != "usage" || d.Error.Next == nil {
		t.Errorf("no such verb: %+v, %+v", d, d.Error)
	}
}

package slipway_test

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A forbidden import, with the reason. From and to are package path patterns below the module: a trailing "/..."
// stands for the package and all below it.
type forbidden struct{ from, to, reason string }

var house = []forbidden{
	{"cmd/slipway", "engine/...", "the installer knows the engine only as a process and over HTTP"},
	{"cmd/slipway", "metal/...", "the installer knows the engine only as a process and over HTTP"},
	{"installer/operate", "cmd/...", "a verb knows no flags"},
	{"installer/operate", "github.com/urfave/cli/v2", "a verb knows no flags"},
	{"installer/operate", "golang.org/x/term", "a verb knows no terminal"},
	{"cmd/slipway-server", "installer/...", "the server knows nothing of installing"},
	{"installer/...", "engine/...", "installer and engine never import each other"},
	{"installer/...", "metal/...", "installer and engine never import each other"},
	{"engine/...", "installer/...", "installer and engine never import each other"},
	{"engine/...", "cmd/...", "programs import packages, not the other way"},
	{"engine/...", "metal/...", "the network is written against engine/device; only the program picks Metal"},
	{"engine/text/...", "engine/model/...", "text knows strings and ids"},
	{"engine/text/...", "engine/device/...", "text knows strings and ids"},
	{"engine/model/...", "engine/api/...", "the network knows no wire shapes"},
	{"engine/memory/...", "engine/api/...", "memory knows keys, ranges and states"},
	{"engine/memory/...", "engine/text/...", "memory knows keys, ranges and states"},
	{"metal/...", "engine/host/...", "metal implements engine/device and sees no more of us"},
	{"engine/api/...", "engine/host/...", "the API answers for a queue, however it was opened"},
	{"engine/pass", "engine/model/...", "the vocabulary of a pass is a leaf that all sides share"},
	{"engine/pass", "engine/memory/...", "the vocabulary of a pass is a leaf that all sides share"},
	{"engine/pass", "engine/serve/...", "the vocabulary of a pass is a leaf that all sides share"},
	{"engine/sample/...", "engine/device/...", "sampling works on distributions"},
	{"engine/structured", "engine/api/...", "a grammar knows schemas and tokens, no requests"},
	{"engine/structured", "engine/serve/...", "a grammar knows schemas and tokens, no requests"},
	{"engine/draft/accept", "engine/device/...", "the acceptance rule works on distributions"},
	{"engine/draft/accept", "engine/model/...", "the acceptance rule works on distributions"},
	{"engine/draft/accept", "time", "the acceptance rule is pure: random numbers are an argument"},
	{"engine/draft/accept", "math/rand/...", "the acceptance rule is pure: random numbers are an argument"},
	{"engine/sample/...", "time", "sampling is pure: the seed is an argument"},
	{"engine/sample/...", "math/rand", "sampling is pure: no global randomness"},
	{"engine/api/...", "engine/model/...", "wire shapes know the queue, not the network"},
	{"engine/api/...", "engine/device/...", "wire shapes know the queue, not the network"},
	{"engine/api/turn/...", "net/...", "a turn is in no wire's form: it knows no HTTP"},
	{"engine/api/web/...", "engine/api", "the server imports its wires and their tools, not the other way"},
	{"metal/...", "engine/model/...", "metal implements engine/device and sees no more of us"},
	{"metal/...", "installer/...", "metal implements engine/device and sees no more of us"},
	{"checks/...", "installer/...", "checks judge a machine by a value and a server by its URL, also a peer's"},
	{"checks/...", "engine/...", "checks judge a machine by a value and a server by its URL, also a peer's"},
	{"profiles/...", "installer/...", "profiles are a pure leaf that both sides import"},
	{"profiles/...", "engine/...", "profiles are a pure leaf that both sides import"},
	{"profiles/...", "net/...", "profiles are pure"},
	{"profiles/...", "time", "profiles are pure"},
	{"fault/...", "installer/...", "fault is a leaf: every package's errors carry its classes"},
	{"fault/...", "checks/...", "fault is a leaf: every package's errors carry its classes"},
	{"fault/...", "os", "fault is pure"},
	{"units/...", "os", "units are pure"},
	{"installer/machine", "installer/plan", "the machine gives facts, no advice"},
	{"installer/machine", "installer/apply", "the machine gives facts, no advice"},
	{"installer/plan", "os", "the plan is a pure function of values"},
	{"installer/plan", "net/...", "the plan is a pure function of values"},
	{"installer/plan", "time", "the plan is a pure function of values"},
	{"installer/plan", "installer/apply", "the plan decides, apply does"},
	{"installer/plan", "installer/hub", "the plan fetches nothing"},
	{"installer/hub", "installer/pin", "the hub brings bytes and trusts nothing"},
	{"installer/hub", "installer/plan", "the hub brings bytes and decides nothing"},
	{"installer/pin", "net/http", "pin proves the bytes that it is handed"},
	{"installer/pin", "installer/hub", "pin proves the bytes that it is handed"},
	{"...", "C", "no cgo, ever"},
	{"...", "github.com/shirou/gopsutil/v4/...", "gopsutil v3 is the one chosen"},
}

// isWire names the packages under engine/api that are a wire: all but what wires share.
func isWire(pkg string) bool {
	rest, below := strings.CutPrefix(pkg, "engine/api/")
	return below && !matches("turn/...", rest) && !matches("web/...", rest)
}

// A wire is thin: it is rendered over turn and web, which know no wire, and no wire knows another or the server.
func TestWiresImportNeitherEachOtherNorTheServer(t *testing.T) {
	wires := 0
	for pkg, list := range importsOf(t, nil) {
		if isWire(pkg) {
			wires++
		}
		for _, imported := range list {
			if strings.HasPrefix(pkg, "engine/api/") && imported != pkg &&
				(isWire(imported) || imported == "engine/api") {
				t.Errorf("%s imports %s: wires are separate, and what they share knows none of them", pkg, imported)
			}
		}
	}
	if wires == 0 {
		t.Error("there is no wire, so this test guards nothing")
	}
}

// Both programs, the checks and other people's code read these documents: they must not bring the rest of us along.
func TestWireDocumentsImportNothingOfOurs(t *testing.T) {
	imports := importsOf(t, nil)
	if _, ok := imports["wire"]; !ok {
		t.Fatal("there is no package wire, so this test guards nothing")
	}
	for _, imported := range imports["wire"] {
		if _, ours := imports[imported]; ours {
			t.Errorf("wire imports %s: it is a leaf", imported)
		}
	}
}

// cmd/slipway decides nothing: a verb is a method of installer/operate, and these files parse flags and print. So they
// may not plan, apply, start or stop anything, whatever they import for its types.
func TestCommandsDecideNothing(t *testing.T) {
	forbidden := map[string]string{
		"os/exec": "starting programs is work of installer", "net": "talking to others is work of installer and checks",
		"slipway/installer/apply": "carrying out a plan is work of installer/operate",
		"slipway/installer/store": "models on disk are work of installer/operate",
		"slipway/installer/hub":   "the hub is work of installer", "slipway/installer/pin": "proofs are work " +
			"of installer",
		"slipway/installer/process": "processes are work of installer",
	}
	calls := regexp.MustCompile(
		`\b(launch\.(Look|Stop|Start|RotateLog)|installer\.(Prepare|LockModel|Models)|plan\.(Make|Judge)|neighbor\.New)\(`)
	files, err := filepath.Glob("cmd/slipway/*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range parsed.Imports {
			name := strings.Trim(imported.Path.Value, `"`)
			if why := forbidden[name]; why != "" && !allowedImports[file+" "+name] {
				t.Errorf("%s imports %s: %s", file, name, why)
			}
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if call := calls.FindString(string(raw)); call != "" {
			t.Errorf("%s calls %s...): that belongs to installer/operate", file, call)
		}
	}
}

// allowedImports are for types only.
var allowedImports = map[string]bool{
	"cmd/slipway/progress.go slipway/installer/apply":  true, // apply.Event
	"cmd/slipway/uninstall.go slipway/installer/apply": true, // apply.Removal
	"cmd/slipway/verify.go slipway/installer/store":    true, // the states of a file
}

func TestForbiddenImports(t *testing.T) {
	for _, target := range [][]string{{"GOOS=linux", "GOARCH=amd64"}, {"GOOS=darwin", "GOARCH=arm64"}} {
		imports := importsOf(t, target)
		for pkg, list := range imports {
			for _, imported := range list {
				for _, rule := range house {
					if matches(rule.from, pkg) && matches(rule.to, imported) {
						t.Errorf("%s: %s imports %s: %s", strings.Join(target, " "), pkg, imported, rule.reason)
					}
				}
			}
		}
	}
}

// The server's main is flags, signals and exit codes: of the engine it imports what opens a model, the queue and the
// API.
func TestServersMainImportsOnlyHostServeAndAPI(t *testing.T) {
	allowed := []string{"engine/host", "engine/serve", "engine/api"}
	for _, target := range [][]string{{"GOOS=linux", "GOARCH=amd64"}, {"GOOS=darwin", "GOARCH=arm64"}} {
		imports := importsOf(t, target)["cmd/slipway-server"]
		if !slices.Contains(imports, "engine/host") {
			t.Errorf("%s: the server opens no model: %v", strings.Join(target, " "), imports)
		}
		for _, imported := range imports {
			if strings.HasPrefix(imported, "engine/") && !slices.Contains(allowed, imported) {
				t.Errorf("%s: cmd/slipway-server imports %s; it may import %v of the engine", strings.Join(target, " "),
					imported, allowed)
			}
		}
	}
}

// go-m1cpu before 0.2.1, which gopsutil's cpu package brings, crashes before main on newer Macs. Nothing of ours may
// link it, in whatever version.
func TestModuleThatCrashesBeforeMainIsNotLinked(t *testing.T) {
	for _, target := range [][]string{{"GOOS=linux", "GOARCH=amd64"}, {"GOOS=darwin", "GOARCH=arm64"}} {
		cmd := exec.Command("go", "list", "-deps", "./cmd/...")
		cmd.Env = append(append(cmd.Environ(), "CGO_ENABLED=0"), target...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		if !strings.Contains(string(out), "github.com/shirou/gopsutil/v3/") {
			t.Fatal("gopsutil is not linked, so this test guards nothing: remove it with the module")
		}
		if strings.Contains(string(out), "go-m1cpu") {
			t.Errorf("%s: go-m1cpu is linked", strings.Join(target, " "))
		}
	}
}

// The rules themselves must be able to fail.
func TestForbiddenImportsSeesASeededOne(t *testing.T) {
	for _, seeded := range [][2]string{{"engine/serve", "installer/plan"}, {"cmd/slipway", "engine/text"},
		{"profiles", "net/http"}} {
		hit := false
		for _, rule := range house {
			hit = hit || matches(rule.from, seeded[0]) && matches(rule.to, seeded[1])
		}
		if !hit {
			t.Errorf("%s importing %s is not seen", seeded[0], seeded[1])
		}
	}
}

// importsOf returns the direct imports of every package of the module, with the module's own paths made relative.
func importsOf(t *testing.T, env []string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	cmd.Env = append(append(cmd.Environ(), "CGO_ENABLED=0"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	imports := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		for i := range fields {
			fields[i] = strings.TrimPrefix(fields[i], "slipway/")
		}
		imports[fields[0]] = fields[1:]
	}
	return imports
}

func matches(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if base, all := strings.CutSuffix(pattern, "/..."); all {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	return path.Clean(pattern) == pkg
}

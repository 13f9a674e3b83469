package slipway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A command may call any function of these packages: the verbs, their documents, and words.
var verbPackages = []string{"slipway/installer/operate", "slipway/installer/answers", "slipway/installer/consent",
	"slipway/fault", "slipway/units", "slipway/termtext"}

// Of other packages it calls only these: they read or write a value, or describe this process.
var commandCalls = []string{"plan.KindsOf", "plan.ReadNormalize", "plan.ReadHosts", "plan.ReadOrigins",
	"installer.CheckPort", "installer.CheckDiskCache", "installer.CheckIdle", "installer.Digest", "machine.System",
	"machine.MetalMain", "measure.Seconds", "ruler.Names", "profiles.DraftHelp", "profiles.DraftChoices"}

// What a flag says as a number.
var numbersOfFlags = []string{"c.Int", "c.Uint64", "c.Float64", "c.Duration", "strconv.Atoi", "units.ParseBytes",
	"units.ParseRate"}

// Whether a number is allowed is for the verb to say: another caller has no flags. So a command compares none with a
// bound, and calls no package below the verbs but to read or write a value.
func TestCommandsCompareNoFlagAndCallOnlyVerbs(t *testing.T) {
	files, err := filepath.Glob("cmd/slipway/*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range commandDecisions(t, file, source) {
			t.Errorf("%s: that belongs to installer/operate or what it calls", found)
		}
	}
}

// The rule itself must be able to fail.
func TestDecisionsOfACommandAreSeen(t *testing.T) {
	const head = "package main\nimport (\"slipway/checks/suite\"; \"slipway/installer/plan\")\nfunc f() {\n"
	for _, c := range []struct{ body, found string }{
		{`if c.Int("repeat") < 1 { return }`, "compares"},
		{`for _, name := range names { if n := c.Int(name); n < 1 || n > 9 { return } }`, "compares"},
		{`d := c.Duration("idle-for"); if d > time.Hour { return }`, "compares"},
		{`bytes, ok := units.ParseBytes(text); if !ok || bytes < least { return }`, "compares"},
		{`suite.CompareRuns(a, b)`, "calls suite.CompareRuns"},
		{`plan.Make(d)`, "calls plan.Make"},
		{`in.Port = c.Int("port"); in.Stop = plan.KindsOf(names); if len(names) > 1 { return }`, ""},
	} {
		found := strings.Join(commandDecisions(t, "seeded.go", []byte(head+c.body+"\n}\n")), "\n")
		if (found == "") != (c.found == "") || !strings.Contains(found, c.found) {
			t.Errorf("%s: found %q, wanted %q", c.body, found, c.found)
		}
	}
}

// commandDecisions lists comparisons of flags' numbers and calls below the verbs.
func commandDecisions(t *testing.T, name string, source []byte) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	below := map[string]bool{} // packages of ours that are not the verbs'
	for _, imported := range file.Imports {
		path, _ := strconv.Unquote(imported.Path.Value)
		if strings.HasPrefix(path, "slipway/") && !slices.Contains(verbPackages, path) {
			below[path[strings.LastIndex(path, "/")+1:]] = true
		}
	}
	for _, decl := range file.Decls {
		numbers := map[string]bool{} // variables that hold a flag's number
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if len(n.Rhs) == 1 && holdsNumber(n.Rhs[0], nil) {
					if to, ok := n.Lhs[0].(*ast.Ident); ok {
						numbers[to.Name] = true
					}
				}
			case *ast.BinaryExpr:
				ordered := []token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}
				if slices.Contains(ordered, n.Op) && (holdsNumber(n.X, numbers) || holdsNumber(n.Y, numbers)) {
					found = append(found, files.Position(n.Pos()).String()+" compares the number of a flag")
				}
			case *ast.CallExpr:
				called := selected(n.Fun)
				if pkg, _, _ := strings.Cut(called, "."); below[pkg] && !slices.Contains(commandCalls, called) {
					found = append(found, files.Position(n.Pos()).String()+" calls "+called)
				}
			}
			return true
		})
	}
	return found
}

// holdsNumber reports whether an expression is a flag's number, or a variable that holds one.
func holdsNumber(e ast.Expr, numbers map[string]bool) (holds bool) {
	switch e := e.(type) {
	case *ast.Ident:
		return numbers[e.Name]
	case *ast.CallExpr:
		return slices.Contains(numbersOfFlags, selected(e.Fun))
	case *ast.ParenExpr:
		return holdsNumber(e.X, numbers)
	}
	return false
}

// selected is a selector as it is written, "pkg.Name"; "" for anything else.
func selected(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

package mtl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Every message in this package's source, against the table: as many arguments as the selector has colons and Apple's declaration has
// types, the way of sending that the types need, and no row without a call.
func TestCallThatItsSelectorDoesNotFit(t *testing.T) {
	names := constants(t)
	if len(names) != int(selectorCount) {
		t.Fatalf("%d constants, %d rows", len(names), selectorCount)
	}
	used := map[string]bool{}
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for file, f := range packages["mtl"].Files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			name, isName := call.Args[1].(*ast.Ident)
			method, isMethod := call.Fun.(*ast.SelectorExpr)
			if !isName || !isMethod || names[name.Name] == nil {
				return true
			}
			used[name.Name] = true
			row := names[name.Name]
			wanted := "message"
			if row.result == "double" {
				wanted = "double"
			} else if strings.Contains(row.arguments, "MTLSize") {
				wanted = "sizes"
			} else if strings.Contains(row.arguments, "NSRange") {
				wanted = "ranged"
			}
			if n := len(call.Args) - 2; n != strings.Count(row.name, ":") || n != len(strings.Fields(row.arguments)) || method.Sel.Name != wanted {
				t.Errorf("%s: %s by %s with %d arguments; declared are %q, by %s", file, row.name, method.Sel.Name, n, row.arguments, wanted)
			}
			return true
		})
	}
	for name := range names {
		if !used[name] {
			t.Errorf("%s is never sent", name)
		}
	}
}

type row struct{ name, result, arguments string }

// constants maps the names of the selector constants to their rows.
func constants(t *testing.T) map[string]*row {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "selectors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*row{}
	ast.Inspect(f, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			return true
		}
		for i, s := range d.Specs {
			name := s.(*ast.ValueSpec).Names[0].Name
			if name != "selectorCount" {
				r := selectorTable[i]
				out[name] = &row{r.name, r.result, r.arguments}
			}
		}
		return true
	})
	return out
}

package mtl_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/metal/fake"
	"slipway/metal/mtl"
)

// encodings maps the type names of the table to Objective-C's type encoding.
var encodings = map[string]string{
	"void": "v", "id": "@", "SEL": ":", "BOOL": "B", "NSInteger": "q", "NSUInteger": "Q", "uint64": "Q", "double": "d",
	"char*": "*", "void*": "^v", "id*": "^@",
	"NSUInteger*": "^Q", "block": "@?", "NSRange": "{_NSRange=QQ}", "MTLSize": "{?=QQQ}",
}

func TestSelectorsAreAsAppleDeclaresThem(t *testing.T) {
	seen := map[string]bool{}
	for i := range mtl.SelectorCount {
		name, result, arguments := mtl.Row(i)
		if seen[name] {
			t.Errorf("%s is in two rows", name)
		}
		seen[name] = true
		encoding := encodings[result] + "@:"
		for _, a := range strings.Fields(arguments) {
			encoding += encodings[a]
		}
		if encoding != fake.Declarations[name] {
			t.Errorf("%s: %s of %q is %q, declared is %q", name, result, arguments, encoding, fake.Declarations[name])
		}
	}
}

// goKinds are the kinds in which Go sends, and takes, the words of the table.
var goKinds = map[string]string{"block": "id", "NSInteger": "integer", "NSUInteger": "integer", "uint64": "integer",
	"NSRange": "nsRange", "MTLSize": "size3"}

func goKind(word string) string {
	if kind := goKinds[word]; kind != "" {
		return kind
	}
	return word
}

// Each message in this package's source is compared with the table: the kinds of its arguments, the use of its result,
// the way of sending that the types need. No row is without a call.
func TestCallsFitTheirSelectors(t *testing.T) {
	files, info := source(t)
	names := constants(t, files)
	used := map[string]bool{}
	for _, f := range files {
		var parents []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				parents = parents[:len(parents)-1]
				return true
			}
			parents = append(parents, n)
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			constant, isName := call.Args[1].(*ast.Ident)
			method, isMethod := call.Fun.(*ast.SelectorExpr)
			if !isName || !isMethod || names[constant.Name] == 0 {
				return true
			}
			used[constant.Name] = true
			name, result, arguments := mtl.Row(names[constant.Name] - 1)
			wanted := "message"
			if result == "double" {
				wanted = "double"
			} else if strings.Contains(arguments, "MTLSize") {
				wanted = "sizes"
			} else if strings.Contains(arguments, "NSRange") {
				wanted = "ranged"
			}
			if method.Sel.Name != wanted || strings.Count(name, ":") != len(strings.Fields(arguments)) {
				t.Errorf("%s: %q by %s, wanted %s", name, arguments, method.Sel.Name, wanted)
			}
			var sent, declared []string
			for _, a := range call.Args[2:] {
				sent = append(sent, sentAs(info, a))
			}
			for _, a := range strings.Fields(arguments) {
				declared = append(declared, goKind(a))
			}
			if !slices.Equal(sent, declared) {
				t.Errorf("%s: sent with %q, declared %q", name, sent, declared)
			}
			if taken := takenAs(method.Sel.Name, parents); taken != goKind(result) &&
				!(taken == "pointer" && strings.HasSuffix(result, "*")) {
				t.Errorf("%s: taken as %s, declared %s", name, taken, result)
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

// sentAs is the kind of an argument, by its Go type, before uintptr(x) hides it.
func sentAs(info *types.Info, e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		switch x := call.Args[0]; types.ExprString(call.Fun) {
		case "flag":
			return "BOOL"
		case "uintptr":
			if inner, ok := x.(*ast.CallExpr); ok && types.ExprString(inner.Fun) == "unsafe.Pointer" {
				return pointerTo(info.TypeOf(inner.Args[0]))
			}
			e = x
		}
	}
	switch kind := info.TypeOf(e); types.TypeString(kind, func(*types.Package) string { return "" }) {
	case "object":
		return "id"
	case "method":
		return "SEL"
	case "unsafe.Pointer", "Pointer":
		return "void*"
	default:
		if basic, ok := kind.(*types.Basic); ok && basic.Info()&types.IsInteger != 0 {
			return "integer"
		}
		return types.TypeString(kind, func(*types.Package) string { return "" })
	}
}

func pointerTo(kind types.Type) string {
	switch types.TypeString(kind, func(*types.Package) string { return "" }) {
	case "*object":
		return "id*"
	case "*uintptr":
		return "NSUInteger*"
	case "*byte", "*uint8":
		return "char*"
	}
	return "void*"
}

// takenAs is the type that a message's result is converted to. The last of parents is the call.
func takenAs(sending string, parents []ast.Node) string {
	if sending == "double" {
		return "double"
	}
	switch parent := parents[len(parents)-2].(type) {
	case *ast.ExprStmt, *ast.DeferStmt:
		return "void"
	case *ast.CallExpr:
		switch types.ExprString(parent.Fun) {
		case "object":
			return "id"
		case "truth":
			return "BOOL"
		case "address":
			return "pointer"
		}
	}
	return "integer"
}

// source is this package's files, with the types of their expressions: those of other packages are not known, and not
// needed.
func source(t *testing.T) (files []*ast.File, info *types.Info) {
	t.Helper()
	set := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatal("no source files here", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}}
	unknown := types.Config{Importer: onlyUnsafe{}, Error: func(error) {}}
	unknown.Check("mtl", set, files, info)
	return files, info
}

type onlyUnsafe struct{}

func (onlyUnsafe) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return nil, errors.New("not looked at")
}

// constants maps the names of the selector constants to their rows, counted from 1.
func constants(t *testing.T, files []*ast.File) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST || types.ExprString(d.Specs[0].(*ast.ValueSpec).Names[0]) != "selName" {
				return true
			}
			for i, s := range d.Specs {
				if name := s.(*ast.ValueSpec).Names[0].Name; name != "selectorCount" {
					out[name] = i + 1
				}
			}
			return true
		})
	}
	if len(out) != mtl.SelectorCount {
		t.Fatalf("%d constants, %d rows", len(out), mtl.SelectorCount)
	}
	return out
}

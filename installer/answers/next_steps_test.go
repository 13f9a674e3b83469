package answers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"slipway/fault"
)

// Every step of package fault has words here, and no words belong to a step that is gone.
func TestEveryStepHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../fault/step.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[fault.Step]bool{"": true}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			declared[fault.Step(text)] = true
		}
		return true
	})
	if len(declared) < 20 {
		t.Fatalf("only %d steps found", len(declared))
	}
	for step := range declared {
		if _, ok := steps[step]; !ok {
			t.Errorf("the step %q has no words", step)
		}
	}
	for step := range steps {
		if !declared[step] {
			t.Errorf("the words of %q belong to no step", step)
		}
	}
}

package lint_test

import (
	"strings"
	"testing"

	"slipway/metal/kernels"
	"slipway/metal/lint"
)

func TestEveryKernelHasAHead(t *testing.T) {
	for _, name := range kernels.Names() {
		_, text, _ := strings.Cut(kernels.Source(name), "#line 1 \""+name+".metal\"\n")
		for _, f := range lint.Head(name+".metal", text) {
			t.Error(f)
		}
	}
}

func TestIncompleteHeadIsReported(t *testing.T) {
	const whole = "// Sum: dst = a + b.\n//\n// dst, a, b f32 [count].\n// A thread owns an element.\n// Its own " +
		"plain variant.\n// Reference: device/cpu Sum.\n// Exact.\n\nkernel void sum() {}\n"
	if found := lint.Head("sum.metal", whole); len(found) > 0 {
		t.Fatal(found)
	}
	for line, what := range map[string]string{
		"// Sum: dst = a + b.\n": "what it computes", "// dst, a, b f32 [count].\n": "shapes",
		"// A thread owns an element.\n": "owns", "// Its own plain variant.\n": "plain variant",
		"// Reference: device/cpu Sum.\n": "reference", "// Exact.\n": "tolerance",
	} {
		if found := lint.Head("sum.metal", strings.Replace(whole, line, "", 1)); len(found) != 1 ||
			found[0].Line != 1 || !strings.Contains(found[0].What, what) {
			t.Errorf("without %q: %v", line, found)
		}
	}
	if found := lint.Head("sum.metal", "\n"+whole); len(found) != 6 {
		t.Errorf("no comment on top: %v", found)
	}
}

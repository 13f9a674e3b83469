package kernels

import (
	"strings"
	"testing"
)

func TestUnknownInstructionSetIsRefusedAndChangesNothing(t *testing.T) {
	before := Active()
	for _, row := range []struct{ name, says string }{
		{"sse9", `"sse9" is not known: plain, avx2, avx512 or neon`}, {"ISA(7)", "is not known"},
	} {
		if err := choose(row.name); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%q: error %v, want one that says %q", row.name, err, row.says)
		}
	}
	if err := Use(ISA(7)); err == nil || !strings.Contains(err.Error(), "has no ISA(7)") {
		t.Errorf("a set that the processor lacks: error %v", err)
	}
	if err := choose(""); err != nil {
		t.Errorf("no setting: %v", err)
	}
	if Active() != before {
		t.Errorf("the set is %v after refusals, was %v", Active(), before)
	}
}

func TestInstructionSetIsChosenByName(t *testing.T) {
	defer Use(Active())
	for _, i := range Available() {
		if err := choose(strings.ToUpper(i.String())); err != nil || Active() != i {
			t.Errorf("%v: %v is in use, error %v", i, Active(), err)
		}
	}
}

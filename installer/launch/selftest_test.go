package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFailedSelfTestIsNotTakenForPassed(t *testing.T) {
	for _, c := range []struct{ name, script, sentence, refusal string }{
		{"passed", `echo '{"schema_version":1,"passed":true,"degraded":["rms_norm cannot be used here (x)"],"seconds":12.4,"gpu":{"name":"Apple M3"},"results":[{"operation":"a"},{"operation":"b"}]}'`, "passed: 2 operations on Apple M3 in 12 s", ""},
		{"refused", `echo '{"schema_version":1,"passed":false,"refusal":"swiglu came out wrong","degraded":[],"gpu":null,"results":[]}'; echo 'slipway-server: swiglu came out wrong' >&2; exit 4`, "refused: swiglu came out wrong", "swiglu came out wrong. A small model"},
		{"crash", `echo boom >&2; kill -ABRT $$`, "", "boom"},
		{"silence", `exit 1`, "", "exit status 1"},
		{"another schema", `echo '{"schema_version":2,"passed":true}'`, "", "did not end"},
		{"no JSON", `echo passed`, "", "did not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "server")
			script := "#!/bin/sh\n[ \"$1 $2\" = 'selftest --json' ] || exit 9\n" + c.script + "\n"
			if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := RunSelfTest(t.Context(), program)
			if c.sentence != "" && SelfTestSentence(s) != c.sentence {
				t.Errorf("%q, wanted %q", SelfTestSentence(s), c.sentence)
			}
			var unfit *UnfitError
			if c.refusal == "" && err != nil || c.refusal != "" && (!errors.As(err, &unfit) ||
				!strings.Contains(unfit.Why, c.refusal)) {
				t.Errorf("%v, wanted %q", err, c.refusal)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunSelfTest(ctx, "/bin/true"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if SystemBuild() == "" {
		t.Error("the system has no name")
	}
}

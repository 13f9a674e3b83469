package main

import (
	"strings"
	"testing"
)

// Each model has a line that says how it fits, and the command that takes it only where it does.
func TestModelsListSaysInALineHowEachFits(t *testing.T) {
	_, revisions := threeModels(t)
	r, at := onMac(t, "m1-16", revisions)
	code, out, errOut := r.run(at("http://127.0.0.1:1"), "models", "list")
	for _, part := range []string{
		"qwen3.5-9b-4bit: Qwen3.5 9B, 4 bit, licence Apache-2.0, 5.98 GB\n" +
			"  Context reduced to 114,688 of 262,144 tokens (memory).\n" +
			"  Set it up: slipway setup --model qwen3.5-9b-4bit --home " + r.home + "\n",
		"16.0 GB\n  Does not fit: needs 18.3 GiB of memory (here: 10.7 GiB).\n",
	} {
		if code != 0 || !strings.Contains(out, part) {
			t.Errorf("%d, not there: %s\n%s%s", code, part, out, errOut)
		}
	}
	if strings.Contains(out, "--model qwen3.8") {
		t.Errorf("a model that does not fit is offered:\n%s", out)
	}
}

package main

import (
	"regexp"
	"strings"
	"testing"
)

// What is advised must work.
func TestSettingsBeyondTheGPUNameOnesThatWork(t *testing.T) {
	args := func(cache string) []string {
		return []string{"serve", "--model", pocketDir, "--port", "0", "--device", "metal", "--window", "32768",
			"--parallel", "16", "--cache-memory", cache}
	}
	code, _, errOut := finish(t, fakeCommand(t, "", args("100000000000")...))
	advised := regexp.MustCompile(
		`Lower --cache-memory to (\d+), or --window, or --parallel, or give --kv q8`).FindStringSubmatch(errOut)
	if code != exitUsage || advised == nil || !strings.Contains(errOut, "half of --cache-memory 100000000000, for "+
		"restore points") || !strings.Contains(errOut, "the GPU may use 17.2 GB") {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	begin(t, fakeCommand(t, "", args(advised[1])...))
}

package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"slipway/wire"
)

// SelfTestSentence says how a self-test went.
func SelfTestSentence(s wire.SelfTest) string {
	if !s.Passed {
		return "refused: " + s.Refusal
	}
	name := "the GPU"
	if s.GPU != nil {
		name = s.GPU.Name
	}
	return fmt.Sprintf("passed: %d operations on %s in %.0f s", len(s.Results), name, s.Seconds)
}

// selfTestLimit is three times what the self-test may take.
const selfTestLimit = 3 * time.Minute

// RunSelfTest has the server test every kernel on this machine's GPU. Errors: *UnfitError where the GPU may not be
// used or the server could not say; the context's.
func RunSelfTest(ctx context.Context, program string) (wire.SelfTest, error) {
	limited, cancel := context.WithTimeout(ctx, selfTestLimit)
	defer cancel()
	var said strings.Builder
	cmd := exec.CommandContext(limited, program, "selftest", "--json")
	cmd.Env, cmd.WaitDelay, cmd.Stderr = environment(), time.Second, &said
	out, runErr := cmd.Output()
	if ctx.Err() != nil {
		return wire.SelfTest{}, context.Cause(ctx)
	}
	var s wire.SelfTest
	if err := json.Unmarshal(out, &s); err != nil || s.SchemaVersion != 1 {
		why := strings.TrimSpace(said.String())
		if why == "" {
			why = fmt.Sprint(runErr)
		}
		return s, &UnfitError{"the self-test of Metal did not end: " + why}
	}
	if !s.Passed {
		return s, &UnfitError{s.Refusal + ". A small model can be answered by the CPU: run slipway setup " +
			"--model pocket"}
	}
	return s, nil
}

package main

import (
	"encoding/json"
	"syscall"
	"testing"

	"slipway/wire"
)

// Set-up launches a profile's MTP draft on Metal: it must serve there, with the answers of a server without a draft. So
// must a DFlash2 draft, which records only operations that Metal has; that its tokens are taken shows that they mean
// there what they mean on the CPU.
func TestServerOnMetalDraftsWithTheSameAnswers(t *testing.T) {
	answers := map[string]string{}
	for _, draft := range []string{"none", "mtp", "dflash2"} {
		p := begin(t, fakeCommand(t, "", "serve", "--model", pocketDir, "--port", "0", "--device", "metal",
			"--window", "1024", "--draft", draft))
		var r struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   wire.Usage
		}
		response := p.post(t, string(body([]message{user("Hello")}, message{"temperature": 0, "max_tokens": 10})))
		if err := json.NewDecoder(response.Body).Decode(&r); err != nil || len(r.Choices) != 1 ||
			r.Choices[0].Message.Content == "" {
			t.Fatalf("--draft %s gives no answer: %v", draft, err)
		}
		answers[draft] = r.Choices[0].Message.Content
		accepted, rejected := r.Usage.CompletionDetails.AcceptedPredictionTokens,
			r.Usage.CompletionDetails.RejectedPredictionTokens
		if draft == "dflash2" && (accepted < 2 || rejected > 1) {
			t.Errorf("%d tokens of the draft were taken, %d were not", accepted, rejected)
		}
		p.Process.Signal(syscall.SIGTERM)
		if code := p.ended(t); code != exitOK {
			t.Fatalf("exit code %d: %s", code, p.said())
		}
	}
	if answers["none"] != answers["mtp"] || answers["none"] != answers["dflash2"] {
		t.Errorf("the answers are %q", answers)
	}
}

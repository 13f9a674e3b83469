package main

import (
	"syscall"
	"testing"
)

// Set-up launches a profile's MTP draft on Metal: it must serve there, with the answers of a server without a draft.
func TestServerOnMetalDraftsWithTheSameAnswers(t *testing.T) {
	answers := map[string]string{}
	for _, draft := range []string{"none", "mtp", "dflash2"} {
		p := begin(t, fakeCommand(t, "", "serve", "--model", pocketDir, "--port", "0", "--device", "metal",
			"--window", "1024", "--draft", draft))
		content, _, _ := turnOf(t, p, []message{user("Hello")})
		if content == "" {
			t.Fatalf("--draft %s gives no answer", draft)
		}
		answers[draft] = content
		p.Process.Signal(syscall.SIGTERM)
		if code := p.ended(t); code != exitOK {
			t.Fatalf("exit code %d: %s", code, p.said())
		}
	}
	if answers["none"] != answers["mtp"] || answers["none"] != answers["dflash2"] {
		t.Errorf("the answers are %q", answers)
	}
}

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"slipway/wire"
)

// What a draft did of each request, by place in its proposals, is on the page as the API says it.
func TestMonitorShowsWhatADraftDid(t *testing.T) {
	p, at := monitored(t, "--draft", "mtp", "--draft-tokens", "2", "--window", "1024")
	b := browse(t)
	b.do(chromedp.Navigate(at + "/monitor"))
	response := p.post(t, `{"model":"pocket","messages":[{"role":"user","content":"Tell me about boats."}],`+
		`"max_tokens":60,"temperature":0,"logit_bias":{"4088":-100},"slipway":{"draft_tokens":2}}`)
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	b.until("the request", `document.querySelectorAll('#recent tbody tr[data-phase="done"]').length === 1`)
	now := getJSON[wire.Watching](t, p.url+"/slipway/requests")
	d := now.Requests[0].Draft
	if d == nil || d.Drafted == 0 || len(d.Positions) != 2 || d.TokensPerPass <= 1 || d.VerifyMs <= 0 {
		t.Fatalf("%+v", d)
	}
	cell := evaluate[string](b, `document.querySelector("#recent td[data-label='Draft accepted']").textContent`)
	for _, want := range []string{fmt.Sprintf("%d of %d, %.2f tokens a pass", d.Accepted, d.Drafted, d.TokensPerPass),
		fmt.Sprintf("Place 1%d of %d", d.Positions[0].Accepted, d.Positions[0].Drafted),
		fmt.Sprintf("Place 2%d of %d", d.Positions[1].Accepted, d.Positions[1].Drafted), "Time in verification"} {
		if !strings.Contains(cell, want) {
			t.Errorf("the page has no %q: %q", want, cell)
		}
	}
	if facts := evaluate[string](b, `document.getElementById("facts").textContent`); !strings.Contains(facts,
		"draft mtp, 2 at a time") {
		t.Errorf("the page does not name the draft: %q", facts)
	}
	b.clean(at + "/monitor")
}

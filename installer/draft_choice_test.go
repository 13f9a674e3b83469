package installer

import (
	"strings"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/manifests"
	"slipway/profiles"
)

// A draft that is asked for is planned, with its price, or refused; the model and the profile stay.
func TestDraftThatIsAskedForIsPlannedOrRefused(t *testing.T) {
	var facts machine.Facts
	facts.RAM = machine.Fact[int64]{Value: 96 << 30, Known: true}
	can := capabilitiesOn("linux", "amd64")
	k := known{models: manifests.All()}
	window := map[string]int64{}
	for _, c := range []struct{ model, draft, wanted, says string }{
		{"pocket", "", "none", ""},
		{"pocket", "none", "none", ""},
		{"pocket", "mtp", "mtp", ""},
		{"pocket", "dflash2", "dflash2", ""},
		{"qwen3.5-4b-4bit", "mtp", "mtp", ""},
		{"qwen3.5-4b-4bit", "dflash2", "", "no DFlash2 draft"},
		{"qwen3.8-27b-mtplx-bare-speed", "dflash2", "dflash2", ""},
		{"qwen3.8-27b-mtplx-bare-speed", "mtp", "mtp", ""},
	} {
		in := Input{Request: plan.Request{Model: c.model, Profile: "exact", Draft: c.draft}}
		chosen, err := choose(in, facts, k, can)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), "--draft "+c.draft+" is not possible") ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, --draft %s: %v, wanted %q", c.model, c.draft, err, c.says)
			}
			continue
		}
		if err != nil || chosen.sized.Draft != c.wanted || chosen.sized.Name != "exact" {
			t.Errorf("%s, --draft %s: %+v, %v", c.model, c.draft, chosen.sized, err)
			continue
		}
		if own := chosen.draft != nil; own != (c.draft == "dflash2" && c.model[:6] == "qwen3." ||
			c.draft == "mtp" && c.model == "qwen3.5-4b-4bit") {
			t.Errorf("%s, --draft %s: files of its own: %v", c.model, c.draft, own)
		}
		if cost := chosen.draftCost(); (cost == "") != (c.wanted == "none") {
			t.Errorf("%s, --draft %s: cost %q", c.model, c.draft, cost)
		}
		if c.model == "pocket" {
			window[c.draft] = chosen.result.UsedBytes
		}
	}
	if window[""] != window["none"] || window["mtp"] <= window[""] || window["dflash2"] <= window[""] {
		t.Errorf("the drafts cost nothing: %v", window)
	}
	old := capabilitiesOn("linux", "amd64")
	old.Drafts = []string{"none"}
	in := Input{Request: plan.Request{Model: "pocket", Profile: "exact", Draft: "dflash2"}}
	if _, err := choose(in, facts, k, old); err == nil || !strings.Contains(err.Error(), "this server has no dflash2") {
		t.Errorf("a server without drafts: %v", err)
	}
}

// What is set up keeps its draft until another is asked for, or another model.
func TestDraftThatIsSetUpStays(t *testing.T) {
	set := plan.Request{Model: "pocket", Profile: "exact", Draft: "dflash2"}
	for _, c := range []struct{ model, draft, wanted string }{
		{"", "", "dflash2"}, {"pocket", "", "dflash2"}, {"", "none", "none"}, {"qwen3.5-4b-4bit", "", ""},
	} {
		in := Input{Request: plan.Request{Model: c.model, Draft: c.draft}}
		in.FillFrom(set)
		if in.Draft != c.wanted {
			t.Errorf("--model %q --draft %q: %q, wanted %q", c.model, c.draft, in.Draft, c.wanted)
		}
	}
}

func TestProfileTakesAnotherDraft(t *testing.T) {
	p, _ := profiles.ByID("long")
	for kind, want := range map[profiles.DraftKind]profiles.DraftChoice{"": p.Draft, "dflash2": p.Draft,
		"mtp": {Kind: "mtp", Tokens: 1}, "none": {Kind: "none"}} {
		if got := p.WithDraft(kind).Draft; got != want {
			t.Errorf("%q: %+v, wanted %+v", kind, got, want)
		}
	}
}

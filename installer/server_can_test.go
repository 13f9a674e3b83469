package installer

import (
	"slices"
	"strings"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/manifests"
	"slipway/profiles"
)

// A run that is interrupted after it built the server must continue with its own plan, although the server now says of
// itself what was only assumed when the plan was begun; unless the server cannot do what the plan wants.
func TestPlanBegunOnAssumptionsContinuesOnceTheServerIsProbed(t *testing.T) {
	assumed := Capabilities(machine.System())
	more, other := assumed, assumed
	more.KVFormats = append(slices.Clone(more.KVFormats), "q8")
	other.KVFormats, other.KVFormatsOf = []string{"q8"}, nil
	was := "by " + assumed.KVFormats[len(assumed.KVFormats)-1]
	decide := func(can machine.Fact[profiles.Capabilities]) (decided, error) {
		best := can.Value.KVFormats[len(can.Value.KVFormats)-1]
		d := decided{can: can, plan: plan.Plan{Digest: "by " + best}}
		d.choice.sized = plan.Profile{KVFormat: best, PrefillPolicy: "exact", Draft: "none", Device: "cpu"}
		return d, nil
	}
	for _, row := range []struct {
		name    string
		probe   profiles.Capabilities
		journal string
		want    string
	}{
		{"no plan is open", more, "", "by q8"},
		{"the plan of the assumption is open", more, was, was},
		{"the plan of the probe is open", more, "by q8", "by q8"},
		{"another plan is open", more, "by another home", "by q8"},
		{"the server cannot do what the open plan wants", other, was, "by q8"},
	} {
		begun := func(digest string) bool { return digest == row.journal }
		d, err := decideBy(machine.Fact[profiles.Capabilities]{Value: row.probe, Known: true, Certain: true}, assumed,
			begun,
			decide)
		if err != nil || d.plan.Digest != row.want {
			t.Errorf("%s: %s %v, want %s", row.name, d.plan.Digest, err, row.want)
		}
	}
}

func TestPlanUsesNoFormatOfAnotherDevice(t *testing.T) {
	mac := capabilitiesOn("darwin", "arm64")
	host := profiles.Machine{RAMBytes: 36 << 30, CapBytes: 27 << 30, Mac: true}
	pocket, _ := manifests.ByID("pocket")
	for _, row := range []struct{ device, profile, want string }{{"cpu", "exact", "f32"}, {"metal", "exact", "f16"},
		{"cpu", "balanced", "f32"}, {"metal", "balanced", "q8"}} {
		d := choice{manifest: pocket}
		d.profile, _ = profiles.ByID(row.profile)
		d.size(host, row.device, mac, 0)
		if d.sized.KVFormat != row.want || d.notFit != "" || !honours(mac, d.sized) {
			t.Errorf("%s on %s: keys and values are planned in %q, wanted %s: %s", row.profile, row.device,
				d.sized.KVFormat,
				row.want, d.notFit)
		}
	}
	if honours(mac, plan.Profile{KVFormat: "q8", Device: "cpu"}) {
		t.Error("8 bit on the CPU is taken for possible")
	}
}

// A Mac that wants the smaller cache gets 8 bit, with the window that its bytes allow, in the plan, in its sentence
// and in what the server is started with.
func TestPlanOnAMacNames8BitKV(t *testing.T) {
	can := capabilitiesOn("darwin", "arm64")
	host := profiles.Machine{RAMBytes: 36 << 30, CapBytes: 27 << 30, Mac: true}
	model, _ := manifests.ByID("qwen3.8-27b-mtplx-bare-speed")
	sized := map[string]choice{}
	for _, id := range []string{"exact", "balanced"} {
		c := choice{manifest: model}
		c.profile, _ = profiles.ByID(id)
		c.size(host, "metal", can, 0)
		if c.notFit != "" {
			t.Fatal(c.notFit)
		}
		sized[id] = c
	}
	// 27 GiB less weights, the MTP head that balanced drafts with, live state, four points and scratch, over the bytes
	// of a token (65,536 and 34,816, and 4,096 for the head), in steps of 4,096.
	for id, bytes := range map[string]int64{"exact": 65536, "balanced": 34816} {
		c := sized[id]
		costs := c.result.Costs
		rest := int64(27)<<30 - costs.ProjectedBytes(profiles.Load{Sequences: 1, RestorePoints: 4})
		want := int(rest / (bytes + costs.MTPKVBytesPerToken) / 4096 * 4096)
		if c.sized.WindowTokens != want || costs.KVBytesPerToken != bytes {
			t.Errorf("%s: a window of %d at %d bytes a token, wanted %d", id, c.sized.WindowTokens,
				costs.KVBytesPerToken, want)
		}
	}
	if head := sized["balanced"].result.Costs.MTPKVBytesPerToken; head != 4096 {
		t.Errorf("the MTP head takes %d bytes a token, wanted 4096", head)
	}
	c := sized["balanced"].sized
	if c.KVFormat != "q8" || c.Draft != "mtp" {
		t.Errorf("%+v", c)
	}
	if reasons := strings.Join(sized["balanced"].proposal.Reasons, " "); !strings.Contains(reasons,
		"Profile balanced approximates: keys and values at 8 bit") {
		t.Errorf("the price is not said: %s", reasons)
	}
	p := plan.Make(plan.Decisions{Profile: c, Request: plan.Request{Launch: true}})
	if !slices.ContainsFunc(p.Actions, func(a plan.Action) bool {
		return strings.Contains(a.Sentence,
			"KV q8 (less exact than 16 bit)")
	}) {
		t.Errorf("the plan does not say it: %+v", p.Actions)
	}
}

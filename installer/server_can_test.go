package installer

import (
	"slices"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/manifests"
	"slipway/profiles"
)

// A run that is interrupted after it built the server must go on with its own plan, although the server now says of
// itself what was only assumed when the plan was begun; unless the server cannot do what the plan wants.
func TestPlanBegunByAssumptionGoesOnOnceTheServerSpeaks(t *testing.T) {
	more := Capabilities()
	more.KVFormats = append(more.KVFormats, "q8")
	other := Capabilities()
	other.KVFormats = []string{"q8"}
	was := "by " + Capabilities().KVFormats[len(Capabilities().KVFormats)-1]
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
		d, err := decideBy(machine.Fact[profiles.Capabilities]{Value: row.probe, Known: true, Certain: true}, row.journal, decide)
		if err != nil || d.plan.Digest != row.want {
			t.Errorf("%s: %s %v, want %s", row.name, d.plan.Digest, err, row.want)
		}
	}
}

func TestFormatOfAnotherDeviceThatIsPlannedWith(t *testing.T) {
	c := profiles.Capabilities{KVFormats: []string{"f32", "f16", "q8"}}
	if got := on("cpu", c).KVFormats; !slices.Equal(got, []string{"f32"}) {
		t.Errorf("on the CPU: %v", got)
	}
	if got := on("metal", c).KVFormats; !slices.Equal(got, []string{"f16", "q8"}) {
		t.Errorf("on Metal: %v", got)
	}
	host := profiles.Machine{RAMBytes: 36 << 30, CapBytes: 27 << 30, Mac: true}
	pocket, _ := manifests.ByID("pocket")
	for _, device := range []string{"cpu", "metal"} {
		d := choice{manifest: pocket, profile: profiles.All()[0]}
		d.size(host, device, profiles.Capabilities{KVFormats: []string{"f32", "f16"}, PrefillPolicies: []string{"exact"}, Drafts: []string{"none"}, Devices: []string{"cpu", "metal"}}, 0)
		if want := map[string]string{"cpu": "f32", "metal": "f16"}[device]; d.sized.KVFormat != want || d.notFit != "" {
			t.Errorf("on %s keys and values are planned in %q, wanted %s: %s", device, d.sized.KVFormat, want, d.notFit)
		}
	}
}

package installer

import (
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/profiles"
)

// A run that is interrupted after it built the server must go on with its own plan, although the server now says of
// itself what was only assumed when the plan was begun; unless the server cannot do what the plan wants.
func TestPlanBegunByAssumptionGoesOnOnceTheServerSpeaks(t *testing.T) {
	more := Capabilities()
	more.KVFormats = append(more.KVFormats, "bf16")
	other := Capabilities()
	other.KVFormats = []string{"bf16"}
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
		{"no plan is open", more, "", "by bf16"},
		{"the plan of the assumption is open", more, "by f32", "by f32"},
		{"the plan of the probe is open", more, "by bf16", "by bf16"},
		{"another plan is open", more, "by another home", "by bf16"},
		{"the server cannot do what the open plan wants", other, "by f32", "by bf16"},
	} {
		d, err := decideBy(machine.Fact[profiles.Capabilities]{Value: row.probe, Known: true, Certain: true}, row.journal, decide)
		if err != nil || d.plan.Digest != row.want {
			t.Errorf("%s: %s %v, want %s", row.name, d.plan.Digest, err, row.want)
		}
	}
}

package installer

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"

	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/profiles"
)

// Capabilities is what the server of this version is taken to honour on a machine before it is built and can say so
// itself. A test compares it with the real server's probe.
func Capabilities(at machine.Sources) profiles.Capabilities {
	system, processor, _ := at.Platform()
	return capabilitiesOn(system, processor)
}

func capabilitiesOn(system, processor string) profiles.Capabilities {
	c := profiles.Capabilities{KVFormats: []string{"f32"}, KVFormatsOf: map[string][]string{"cpu": {"f32"}},
		Operands: []string{}, PrefillPolicies: []string{"exact"}, Drafts: profiles.DraftNames(),
		Devices: []string{"cpu"}}
	if system == "darwin" && processor == "arm64" {
		c.KVFormats, c.Devices = append(c.KVFormats, "f16", "q8"), append(c.Devices, "metal")
		c.KVFormatsOf["metal"], c.Operands = []string{"f16", "q8"}, []string{"f16", "bf16"}
	}
	return c
}

// serverCan is what the server of an engine honours: what its probe says where it is built and whole, else what is
// taken for granted of this version, marked as not certain. At launch the probe is compared again.
func serverCan(ctx context.Context, at Environment, k known, engineID string) machine.Fact[profiles.Capabilities] {
	assumed := machine.Fact[profiles.Capabilities]{Value: Capabilities(at.Sources), Known: true,
		How: "assumed of this version: the server is not built yet"}
	if k.home == nil || engineID == "" {
		return assumed
	}
	if _, err := apply.EngineOf(k.home, engineID); err != nil {
		return assumed
	}
	probe, err := launch.AskProbe(ctx, filepath.Join(k.home.Path, filepath.FromSlash(plan.EnginePath(engineID))))
	if err != nil {
		assumed.How = "assumed of this version: " + err.Error()
		return assumed
	}
	return machine.Fact[profiles.Capabilities]{Value: probe.Capabilities, Known: true, Certain: true,
		How: "slipway-server probe"}
}

// decided is what was chosen for a server, and the plan that follows from it.
type decided struct {
	can       machine.Fact[profiles.Capabilities]
	choice    choice
	neighbors neighborhood
	plan      plan.Plan
}

// decideBy decides by what the server says. A plan that was made before the server was built, by what was assumed of
// it, stays as long as the server honours it, while it is open and after it was carried out: a run must not become
// another plan by its own progress.
func decideBy(can machine.Fact[profiles.Capabilities], assumed profiles.Capabilities, begun func(digest string) bool,
	decide func(machine.Fact[profiles.Capabilities]) (decided, error)) (decided, error) {
	d, err := decide(can)
	if !can.Certain || err == nil && begun(d.plan.Digest) || reflect.DeepEqual(can.Value, assumed) {
		return d, err
	}
	before, beforeErr := decide(machine.Fact[profiles.Capabilities]{Value: assumed, Known: true,
		How: "assumed when the plan was begun"})
	if beforeErr == nil && begun(before.plan.Digest) && honours(can.Value, before.choice.sized) {
		return before, nil
	}
	return d, err
}

func honours(can profiles.Capabilities, p plan.Profile) bool {
	for _, need := range []struct {
		what string
		has  []string
	}{{p.KVFormat, can.On(p.Device).KVFormats}, {p.PrefillPolicy, can.PrefillPolicies}, {p.Draft, can.Drafts},
		{p.Device, can.Devices}} {
		if need.what != "" && !slices.Contains(need.has, need.what) {
			return false
		}
	}
	return true
}

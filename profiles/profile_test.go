package profiles_test

import (
	"slices"
	"strings"
	"testing"

	"slipway/profiles"
	"slipway/profiles/strict/stricttest"
)

func TestProfilesOfferedAreThoseTheServerCanHonour(t *testing.T) {
	cpu := profiles.Capabilities{KVFormats: []string{"f32"}, PrefillPolicies: []string{"exact"}, Drafts: []string{
		"none"}, Devices: []string{"cpu"}}
	if missing := profile(t, "exact").Unhonoured(cpu); len(missing) != 0 {
		t.Errorf("exact on the CPU: %q", missing)
	}
	if missing := profile(t, "balanced").Unhonoured(cpu); len(missing) != 0 {
		t.Errorf("balanced on the CPU: %q", missing)
	}
	if missing := profile(t, "long").Unhonoured(cpu); len(missing) != 1 ||
		!strings.Contains(missing[0], "sink_window") {
		t.Errorf("long on the CPU: %q", missing)
	}
	// A draft that the server has not is given up, and said: what it does not propose is neither loaded nor counted.
	undrafted, err := profiles.Size(profiles.Input{Model: model(t, bareSpeed), Profile: profile(t, "balanced"),
		Machine: machines[3].m,
		Capabilities: &profiles.Capabilities{KVFormats: []string{"f16", "q8"}, PrefillPolicies: []string{"exact"},
			Drafts: []string{"none"}, Devices: []string{"metal"}}})
	if err != nil || undrafted.Draft.Kind != profiles.NoDraft || undrafted.Costs.MTPBytes != 0 ||
		undrafted.Costs.MTPKVBytesPerToken != 0 ||
		!slices.Contains(undrafted.Reductions, "no draft (this server has no mtp; only speed is lost)") {
		t.Errorf("balanced without drafts: %+v, %v", undrafted, err)
	}
	r, err := profiles.Size(profiles.Input{Model: model(t, "pocket"), Profile: profile(t, "exact"),
		Machine: profiles.Machine{RAMBytes: 8 * gib}, Capabilities: &cpu})
	if err != nil || r.KVFormat != profiles.F32 || len(r.Notes) != 1 {
		t.Errorf("pocket on the CPU: %+v, %v", r, err)
	}
	if _, err := profiles.Size(profiles.Input{Model: model(t, "pocket"), Profile: profile(t, "long"),
		Machine: profiles.Machine{RAMBytes: 8 * gib}, Capabilities: &cpu}); err == nil {
		t.Error("long was sized for a server that cannot honour it")
	}
}

func TestBundledProfiles(t *testing.T) {
	var ids []string
	for _, p := range profiles.All() {
		ids = append(ids, p.ID)
	}
	if !slices.Equal(ids, []string{"exact", "balanced", "long"}) {
		t.Errorf("profiles are %q", ids)
	}
	long := profile(t, "long")
	if long.Prefill != (profiles.Prefill{Policy: "sink_window", ChunkTokens: 2048, SinkTokens: 8192, WindowTokens: 8192,
		DenseTailTokens: 2048, ContinuingTailTokens: 128}) ||
		long.Window.WantTokens != 262144 || long.Memory.BudgetBytes != 30_000_000_000 ||
		long.KV.Format != profiles.Q8 || long.Draft.Kind != profiles.DFlash2 || !long.Experimental {
		t.Errorf("long is not the issue's: %+v", long)
	}
}

func TestBadProfileIsRefusedAtItsLine(t *testing.T) {
	stricttest.Refused(t, 8, func(file string, data []byte) error {
		_, err := profiles.Parse(file, data)
		return err
	})
}

package installer

import (
	"slices"
	"strings"
	"testing"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/manifests"
)

// factsOf are the facts that sizing needs; no working set: no Metal.
func factsOf(t *testing.T, system, processor string, ramBytes, workingSetBytes int64) machine.Facts {
	t.Helper()
	known := func(n int64) machine.Fact[int64] { return machine.Fact[int64]{Value: n, Known: n > 0, Certain: true} }
	word := func(s string) machine.Fact[string] { return machine.Fact[string]{Value: s, Known: true, Certain: true} }
	return machine.Facts{OS: word(system), Arch: word(processor), RAM: known(ramBytes),
		WorkingSet: known(workingSetBytes)}
}

// The next smaller and the next larger model are named, each with the flag that takes it or with what it needs.
func TestPlanNamesTheNextModelsAndWhatTheyNeed(t *testing.T) {
	const gib = 1 << 30
	for _, row := range []struct {
		name  string
		ram   int64
		metal int64
		in    plan.Request
		model string
		want  []string
	}{
		{"16 GB", 16 * gib, 11453 << 20, plan.Request{}, "qwen3.5-9b-4bit", []string{
			"Smaller: --model qwen3.5-4b-4bit, 3.06 GB; context 237,568 tokens.",
			"Larger: qwen3.8-27b-mtplx-bare-speed needs 18.3 GiB of memory (here: 11.2 GiB)."}},
		{"36 GB", 36 * gib, 27 * gib, plan.Request{}, "qwen3.8-27b-mtplx-bare-speed", []string{
			"Smaller: --model qwen3.5-9b-4bit, 5.98 GB; context 262,144 tokens."}},
		{"32 GB: the larger fits with less", 32 * gib, 21845 << 20, plan.Request{}, "qwen3.5-9b-4bit", []string{
			"Smaller: --model qwen3.5-4b-4bit, 3.06 GB; context 262,144 tokens.",
			"Larger: --model qwen3.8-27b-mtplx-bare-speed, 16.0 GB; context 40,960 tokens."}},
		{"128 GB with a budget", 128 * gib, 107 * gib, plan.Request{MemoryBytes: 12e9}, "qwen3.5-9b-4bit", []string{
			"Smaller: --model qwen3.5-4b-4bit, 3.06 GB; context 237,568 tokens.",
			"Larger: qwen3.8-27b-mtplx-bare-speed needs --memory 20GB or more."}},
		{"Linux, 24 GB", 24 * gib, 0, plan.Request{}, "pocket", []string{
			"Real model: --model qwen3.5-4b-4bit, 3.06 GB; about 1.4 tokens a second here (estimated)."}},
		{"Linux, 4 GB", 4 * gib, 0, plan.Request{}, "pocket", []string{
			"Real model: qwen3.5-4b-4bit needs 3.9 GiB of memory (here: 3.0 GiB)."}},
		{"Linux, by name", 24 * gib, 0, plan.Request{Model: "qwen3.5-4b-4bit"}, "qwen3.5-4b-4bit", []string{
			"Larger: --model qwen3.5-9b-4bit, 5.98 GB; about 0.7 tokens a second here (estimated)."}},
	} {
		system, processor := "linux", "amd64"
		if row.metal > 0 {
			system, processor = "darwin", "arm64"
		}
		facts := factsOf(t, system, processor, row.ram, row.metal)
		can := capabilitiesOn(system, processor)
		c, err := choose(Input{Request: row.in}, facts, known{}, can)
		if err != nil || c.manifest.ID != row.model {
			t.Fatalf("%s: %s, %v", row.name, c.manifest.ID, err)
		}
		var said []string
		for _, a := range alternatives(c, facts, known{}, can) {
			said = append(said, a.Sentence)
			if a.Fits != strings.Contains(a.Sentence, "--model "+a.Model) ||
				a.TokensPerSecond > 0 != (a.Fits && row.metal == 0) {
				t.Errorf("%s: %+v", row.name, a)
			}
		}
		if !slices.Equal(said, row.want) {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, strings.Join(said, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// The estimate follows from the weights alone, and a plan does not depend on it.
func TestEstimateOfSpeedIsInNoPlan(t *testing.T) {
	m, _ := manifests.ByID("qwen3.5-4b-4bit")
	if got := cpuTokensPerSecond(m); got < 1.41 || got > 1.42 {
		t.Errorf("%.2f tokens a second from 4.3 GB/s and 3.03 GB", got)
	}
	p := plan.Make(plan.Decisions{Model: plan.Model{ID: m.ID, Title: m.Title}})
	if text := string(plan.WriteFile(p)); strings.Contains(text, "second") {
		t.Errorf("the plan has it: %s", text)
	}
}

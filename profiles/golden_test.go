package profiles_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/manifests"
	"slipway/profiles"
)

var update = flag.Bool("update", false, "rewrite the golden files, to be reviewed as prose")

type golden struct {
	name string
	m    profiles.Machine
}

// The caps are those of installer/machine's fixtures; that folder names their sources.
var machines = []golden{
	{"M1, 16 GB", profiles.Machine{RAMBytes: 16 * gib, CapBytes: 10922 * mib, Mac: true}},
	{"M4, 24 GB (estimated)", profiles.Machine{RAMBytes: 24 * gib, CapBytes: 16 * gib, CapEstimated: true, Mac: true}},
	{"M2 Pro, 32 GB", profiles.Machine{RAMBytes: 32 * gib, CapBytes: 21845 * mib, Mac: true}},
	{"M4 Max, 36 GB", profiles.Machine{RAMBytes: 36 * gib, CapBytes: 27 * gib, Mac: true}},
	{"M3 Ultra, 96 GB", profiles.Machine{RAMBytes: 96 * gib, CapBytes: 72 * gib, Mac: true}},
	{"M5 Max, 128 GB", profiles.Machine{RAMBytes: 128 * gib, CapBytes: 110100 * mib, Mac: true}},
	{"M3 Ultra, 512 GB (estimated)", profiles.Machine{RAMBytes: 512 * gib, CapBytes: 384 * gib, CapEstimated: true,
		Mac: true}},
	{"Linux, 8 GB", profiles.Machine{RAMBytes: 8 * gib}},
}

func TestGoldenTables(t *testing.T) {
	for _, id := range []string{"qwen3.5-4b-4bit", "qwen3.5-9b-4bit", bareSpeed} {
		t.Run(id, func(t *testing.T) {
			var out strings.Builder
			for _, g := range machines {
				if g.m.CapBytes == 0 {
					continue
				}
				fmt.Fprintf(&out, "%s\n", g.name)
				for _, p := range profiles.All() {
					r, err := profiles.Size(profiles.Input{Model: model(t, id), Profile: p, Machine: g.m})
					if err != nil {
						fmt.Fprintf(&out, "  %s: %v\n", p.ID, err)
						continue
					}
					fmt.Fprintf(&out, "  %s: %s\n    %d tokens, KV %s, %d restore points, draft %s, %.1f of %.1f "+
						"GiB, bound by %s\n", p.ID, r.Sentence,
						r.WindowTokens, r.KVFormat, r.RestorePoints, r.Draft.Kind, float64(r.UsedBytes)/float64(gib),
						float64(r.BudgetBytes)/float64(gib), r.Binding)
					for _, s := range r.Reductions {
						fmt.Fprintf(&out, "    reduced: %s\n", s)
					}
					for _, s := range r.Notes {
						fmt.Fprintf(&out, "    note: %s\n", s)
					}
				}
			}
			compare(t, id+".golden", out.String())
		})
	}
}

func TestGoldenProposals(t *testing.T) {
	var models []profiles.Candidate
	for _, m := range manifests.All() {
		models = append(models, m.Candidate())
	}
	metal := &profiles.Capabilities{KVFormats: []string{"f32", "f16", "q8"}, KVFormatsOf: map[string][]string{
		"cpu": {"f32"}, "metal": {"f16", "q8"}}, PrefillPolicies: []string{"exact"}, Drafts: []string{"none"},
		Devices: []string{"metal", "cpu"}}
	cpu := &profiles.Capabilities{KVFormats: []string{"f32"}, PrefillPolicies: []string{"exact"}, Drafts: []string{
		"none"}, Devices: []string{"cpu"}}
	var out strings.Builder
	propose := func(name string, m profiles.Machine, c *profiles.Capabilities) {
		p, err := profiles.Propose(m, models, profiles.All(), c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		fmt.Fprintf(&out, "%s: %s, profile %s, on %s\n", name, p.ModelID, p.ProfileID, p.Device)
		for _, reason := range p.Reasons {
			fmt.Fprintf(&out, "  %s\n", reason)
		}
	}
	for _, g := range machines {
		propose(g.name, g.m, metal)
	}
	propose("M4 Max, 36 GB, no server known yet", machines[3].m, nil)
	propose("M4 Max, 36 GB, a server for the CPU only", machines[3].m, cpu)
	propose("M1, 8 GB", profiles.Machine{RAMBytes: 8 * gib, CapBytes: 5461 * mib, Mac: true}, metal)
	propose("a Mac with 2 GB for the GPU", profiles.Machine{RAMBytes: 8 * gib, CapBytes: 2 * gib, Mac: true}, metal)
	propose("Linux container, 2 GB", profiles.Machine{RAMBytes: 2 * gib}, cpu)
	compare(t, "proposals.golden", out.String())
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./profiles -update, then read it as prose):\n%s", path, got)
	}
}

// Speed depends on what we have not measured: no sentence may speak of it.
func TestNoSentencePromisesSpeed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"tok/s", "tokens per second", "faster", "speed:", "fast "} {
			if strings.Contains(strings.ToLower(string(data)), word) {
				t.Errorf("%s says %q", file, word)
			}
		}
	}
}

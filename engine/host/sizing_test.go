package host

import (
	"path/filepath"
	"strings"
	"testing"

	"slipway/engine/device/cpu"
	"slipway/engine/model"
	"slipway/engine/weights"
	"slipway/manifests"
	"slipway/profiles"
)

// The plan's price of Pocket is what the network holds, with the MTP head and without.
func TestSizingPricesWhatIsLoaded(t *testing.T) {
	m, ok := manifests.ByID("pocket")
	if !ok {
		t.Fatal("there is no Pocket")
	}
	for _, c := range []struct {
		name   string
		draft  model.Draft
		choice profiles.DraftChoice
	}{
		{"no draft", model.NoDraft, profiles.DraftChoice{Kind: profiles.NoDraft}},
		{"MTP", model.DraftMTP, profiles.DraftChoice{Kind: profiles.MTP, Tokens: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ckpt, err := weights.Open(pocketDir)
			if err != nil {
				t.Fatal(err)
			}
			defer ckpt.Close()
			dev := cpu.New(1)
			defer dev.Close()
			const window, sequences, chunk = 4096, 2, 512
			n, err := model.Load(dev, ckpt, model.Options{WindowTokens: window, MaxSequences: sequences,
				ChunkTokens: chunk, Draft: c.draft})
			if err != nil {
				t.Fatal(err)
			}
			held := n.MemoryBytes()
			costs := profiles.CostsOf(m.Geometry, nil, profiles.F32, c.choice, chunk)
			if priced := window * sequences * (costs.KVBytesPerToken +
				costs.MTPKVBytesPerToken); held.KVPages != priced {
				t.Errorf("keys and values take %d bytes, priced %d", held.KVPages, priced)
			}
			if priced := sequences * costs.StateBytes; held.States != priced {
				t.Errorf("states take %d bytes, priced %d", held.States, priced)
			}
			// The CPU keeps vectors as f32 that the file has in 16 bit: under a hundredth.
			file := m.Geometry.WeightsBytes
			if c.draft == model.DraftMTP {
				file += m.Geometry.MTPBytes
			}
			if more := held.Weights - file; more < 0 || more > file/100 {
				t.Errorf("weights take %d bytes, the manifest says %d", held.Weights, file)
			}
			whole := held.Weights + held.KVPages + held.States + held.Work
			if priced := costs.ProjectedBytes(
				profiles.Load{Sequences: sequences, Tokens: window * sequences}); whole > priced {
				t.Errorf("the network takes %d bytes, priced %d", whole, priced)
			}
		})
	}
}

func TestSizingPricesTheDraftThatIsLoaded(t *testing.T) {
	m, ok := manifests.ByID("pocket")
	if !ok || m.Draft == nil {
		t.Fatal("there is no Pocket with a draft")
	}
	s := pocketOn(&cpuGPU{})
	s.CacheMemoryBytes, s.Parallel, s.WindowTokens, s.Draft = 0, 2, 4096, "dflash2"
	h, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(0)
	g, held, trunk := m.Draft.Geometry, h.draft.MemoryBytes(), h.network.MemoryBytes()
	const sequences = 2
	choice := profiles.DraftChoice{Kind: profiles.DFlash2, Tokens: 3}
	costs := profiles.CostsOf(m.Geometry, &g, profiles.F32, choice, h.network.ChunkTokens())
	none := profiles.CostsOf(m.Geometry, &g, profiles.F32, profiles.DraftChoice{Kind: profiles.NoDraft}, 512)
	// Vectors and base kernels, which the file has in 16 bit, are f32.
	if more := held.Weights - g.WeightsBytes; more < 0 || more > g.WeightsBytes/100 {
		t.Errorf("weights take %d bytes, the manifest says %d", held.Weights, g.WeightsBytes)
	}
	if priced := sequences * (costs.StateBytes - none.StateBytes); held.Rings+held.Rows != priced {
		t.Errorf("rings and rows take %d and %d bytes, priced %d", held.Rings, held.Rows, priced)
	}
	if point := h.network.PointBytes(); point != costs.RestorePointBytes {
		t.Errorf("a restore point takes %d bytes, priced %d", point, costs.RestorePointBytes)
	}
	whole := held.Weights + held.Rings + held.Rows + held.Work +
		trunk.Weights + trunk.KVPages + trunk.States + trunk.Work
	load := profiles.Load{Sequences: sequences, Tokens: 4096 * sequences}
	if priced := costs.ProjectedBytes(load); whole > priced {
		t.Errorf("network and draft take %d bytes, priced %d", whole, priced)
	}
}

func TestDraftIsLoadedOnlyWhereItIsChosen(t *testing.T) {
	held := map[string]model.Memory{}
	for _, draft := range []string{"", "none", "mtp", "dflash2"} {
		s := pocketOn(&cpuGPU{})
		s.CacheMemoryBytes, s.Draft = 0, draft
		h, err := Open(s)
		if err != nil {
			t.Fatal(err)
		}
		held[draft] = h.network.MemoryBytes()
		if has := h.draft != nil || h.draftFiles != nil; has != (draft == "dflash2") {
			t.Errorf("--draft %q: a DFlash2 draft is there: %v", draft, has)
		}
		h.Close(0)
	}
	if held[""] != held["none"] || held["mtp"].Weights <= held[""].Weights ||
		held["mtp"].KVPages*2 != held[""].KVPages*3 ||
		held["dflash2"].Weights != held[""].Weights || held["dflash2"].KVPages != held[""].KVPages {
		t.Errorf("%+v", held)
	}
	s := pocketOn(&cpuGPU{})
	s.Draft = "dflash"
	if _, err := Open(s); err == nil || !strings.Contains(err.Error(), "--draft dflash: there are none, mtp, dflash2") {
		t.Errorf("an unknown draft: %v", err)
	}
}

// Points that were written without a draft serve a run with one, and the other way round: the draft's section is
// optional.
func TestPointsOnDiskServeWithAndWithoutADraft(t *testing.T) {
	for _, order := range [][2]string{{"none", "mtp"}, {"mtp", "none"}, {"mtp", "dflash2"}, {"dflash2", "mtp"},
		{"dflash2", "none"}} {
		t.Run(order[0]+" then "+order[1], func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			with := func(draft string) func(*Settings) {
				return func(s *Settings) { s.CacheDisk, s.Draft = dir, draft }
			}
			k := startKept(t, with(order[0]))
			conversation := []message{user(k.document(17, 600) + "\nWhat is it about?")}
			first := k.ask(conversation, nil)
			conversation = append(conversation, first.message(), user("And then?"))
			want := k.ask(conversation, nil)
			k.stop()
			k = startKept(t, with(order[1]))
			got := k.ask(conversation, nil)
			if got.content != want.content || got.prompt-got.computed < first.prompt-slack {
				t.Errorf("%q with %d of %d tokens restored, before %q", got.content, got.prompt-got.computed,
					got.prompt, want.content)
			}
			if counters := k.host.keeper.Counters(); counters.FromDisk != 1 {
				t.Errorf("%d points came from disk", counters.FromDisk)
			}
		})
	}
}

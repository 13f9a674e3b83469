package host

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/sample"
	"slipway/engine/weights"
	"slipway/manifests"
	"slipway/metal"
	"slipway/metal/gpu"
	"slipway/profiles"
)

// The plan counts a token of context as the device keeps it: one page of every bundled model in every format.
func TestKVTakesTheSizeThatThePlanCounts(t *testing.T) {
	for _, m := range manifests.All() {
		g := m.Geometry
		for name, dev := range map[string]device.Device{"cpu": cpu.New(1), "metal": &metal.Device{}} {
			for format, said := range dev.KVFormats() {
				pool := device.KVGeometry{Layers: g.FullAttentionLayers, Heads: g.KVHeads, HeadDim: g.HeadDim, Pages: 1,
					Format: device.KVFormat(format)}
				if got, want := dev.KVBytes(pool), device.PageTokens*g.KVBytesPerToken(
					profiles.KVFormat(said)); got != want {
					t.Errorf("%s in %s on %s: a page of %d bytes, the plan counts %d", m.ID, said, name, got, want)
				}
			}
		}
	}
}

// auto that had to go to the CPU keeps what the CPU has, and says so; what auto will be is compared with the format
// before that.
func TestFormatThatTheDeviceLacksIsReplacedWithANote(t *testing.T) {
	o := opened{device: cpu.New(1)}
	if got := o.chooseKV("q8"); got != device.KVNative || len(o.notes) != 1 ||
		!strings.Contains(o.notes[0], "in f32 and not in q8") {
		t.Errorf("format %d, notes %q", got, o.notes)
	}
	if got := o.chooseKV(""); got != device.KVNative || len(o.notes) != 1 {
		t.Errorf("format %d, notes %q", got, o.notes)
	}
	o = opened{device: &metal.Device{}}
	if got := o.chooseKV("q8"); got != device.KVQ8 || o.notes != nil {
		t.Errorf("format %d, notes %q", got, o.notes)
	}
	auto := Settings{Device: "auto", Operands: "auto", Accelerator: gpu.Accelerator{Default: true}}
	auto.KV = "f32"
	if err := auto.checkKV(); err == nil || !strings.Contains(err.Error(), "or --device cpu for f32") {
		t.Errorf("f32 where auto is Metal: %v", err)
	}
	for _, format := range []string{"", "f16", "q8"} {
		auto.KV = format
		if err := auto.checkKV(); err != nil {
			t.Errorf("%q where auto is Metal: %v", format, err)
		}
	}
}

// pocketOnMetal loads Pocket once with each of options, all on one GPU.
func pocketOnMetal(t *testing.T, options ...model.Options) (networks []*model.Network) {
	t.Helper()
	gpu, err := metal.New(with(t, "", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gpu.Close() })
	ckpt, err := weights.Open(pocketDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	for _, opt := range options {
		n, err := model.Load(gpu, ckpt, opt)
		if err != nil {
			t.Fatal(err)
		}
		networks = append(networks, n)
	}
	return networks
}

// What 8 bit changes of Pocket's answers on Metal: last logits and greedy text beside 16 bit.
func TestPocketIn8BitAnswersNearly16Bit(t *testing.T) {
	text, err := os.ReadFile("../../engine/model/testdata/oracle/oracle-q4.json")
	if err != nil {
		t.Fatal(err)
	}
	var prompts map[string]struct {
		IDs []int32 `json:"ids"`
	}
	if err := json.Unmarshal(text, &prompts); err != nil {
		t.Fatal(err)
	}
	opt := model.Options{WindowTokens: 1024, MaxSequences: 1}
	in8Bit := opt
	in8Bit.KVFormat = device.KVQ8
	networks := pocketOnMetal(t, opt, in8Bit) // by format
	steps := 4
	if os.Getenv("SLIPWAY_SOAK") != "" {
		steps = 8
	}
	run := func(format device.KVFormat, ids []int32) (last []float32, greedy []int32) {
		t.Helper()
		n := networks[format]
		s, err := n.NewSequence()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range steps {
			rows, err := n.Forward(context.Background(), []pass.Segment{
				{Seq: s, Tokens: ids, Logits: pass.LogitsLast, Top: 20}})
			if err != nil {
				t.Fatal(err)
			}
			logits := rows[0][0]
			sameChoice(t, n, logits, 20)
			if last == nil {
				last = slices.Clone(logits)
			}
			best := slices.Index(logits, slices.Max(logits))
			greedy, ids = append(greedy, int32(best)), []int32{int32(best)}
		}
		return last, greedy
	}
	worst, compared := 0.0, 0
	for name, p := range prompts {
		if len(p.IDs) < 20 || len(p.IDs) > 400 || name == "tool" {
			continue
		}
		wide, wideText := run(device.KVNative, p.IDs)
		narrow, narrowText := run(device.KVQ8, p.IDs)
		most := 0.0
		for i := range wide {
			most = max(most, math.Abs(float64(wide[i]-narrow[i])))
		}
		same := 0
		for same < steps && wideText[same] == narrowText[same] {
			same++
		}
		t.Logf("%s, %d tokens: last logits differ by at most %.4f, the greedy text is equal for %d of %d steps", name,
			len(p.IDs), most, same, steps)
		worst, compared = max(worst, most), compared+1
	}
	if compared == 0 || worst == 0 || worst > 0.5 {
		t.Errorf("%d prompts, worst difference %.4f", compared, worst)
	}
}

// sameChoice holds what the GPU chose of a row against the sampler's look at all of it.
func sameChoice(t *testing.T, n *model.Network, row []float32, k int) {
	t.Helper()
	chosen := (&network{Network: n}).Best(0, 0)
	p := sample.Neutral()
	p.TopK = k
	got, ok := sample.NewSampler(len(row)).DistributionOfTop(chosen, p)
	want, err := sample.NewSampler(len(row)).Distribution(row, p, nil, nil)
	if err != nil || !ok || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Probs, want.Probs) {
		t.Fatalf("the GPU chose %v, the row gives %v (%v, %v)", got, want, ok, err)
	}
}

// An 8-bit restore point is exported from one network and imported by another, as the disk tier does: the same bytes
// and the same logits.
func TestPointIn8BitSurvivesExportAndImport(t *testing.T) {
	opt := model.Options{WindowTokens: 512, MaxSequences: 1, ExtraPages: 2, KVFormat: device.KVQ8}
	networks := pocketOnMetal(t, opt, opt)
	one := func(s *model.Sequence, tokens []int32) []float32 {
		t.Helper()
		rows, err := networks[0].Forward(context.Background(), []pass.Segment{
			{Seq: s, Tokens: tokens, Logits: pass.LogitsLast}})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(rows[0][0])
	}
	const length = 256 + 37
	ids := make([]int32, length)
	for i := range ids {
		ids[i] = int32(i*i*7+i) % 4000
	}
	s, err := networks[0].NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	one(s, ids)
	point, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	want := one(s, []int32{11})
	s.Close()
	state := make([]byte, networks[0].StateBytes())
	point.ReadState(state)
	pageOf := func(p pass.State, index, tokens int) []byte {
		data := make([]byte, networks[0].PositionBytes(tokens))
		p.ReadPage(data, index, tokens)
		return data
	}
	// By way of the other network, back into the first.
	for i := 1; i >= 0; i-- {
		from := point
		if point, err = networks[i].Import(length, state, nil, nil, 0, func(index, tokens int) ([]byte, error) {
			return pageOf(from, index, tokens), nil
		}); err != nil {
			t.Fatal(err)
		}
		for index, tokens := range []int{256, 37} {
			if a, b := pageOf(from, index, tokens), pageOf(point, index, tokens); !slices.Equal(a, b) ||
				len(a) != 2*2*2*(64+4)*tokens {
				t.Errorf("page %d of %d bytes is another, or %d bytes", index, len(a), len(b))
			}
		}
	}
	if s, err = networks[0].NewSequence(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Restore(point, point.Len())
	if got := one(s, []int32{11}); !slices.Equal(got, want) {
		t.Error("the logits after the point are others")
	}
}

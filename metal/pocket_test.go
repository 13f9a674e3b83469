//go:build unix

package metal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"unsafe"

	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/weights"
	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
)

// open makes a device on the fake Metal, closed with the test.
func open(t testing.TB, c fake.Configuration, opt metal.Options) *metal.Device {
	t.Helper()
	cpurun.Need(t)
	libraries, err := fake.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	opt.Libraries = libraries
	d, err := metal.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

const (
	pocket = "../manifests/pocket"
	oracle = "../engine/model/testdata/oracle/oracle-q4.json"
)

type prompt struct {
	IDs           []int32   `json:"ids"`
	LastTopIDs    []int     `json:"last_top_ids"`
	LastTopLogits []float64 `json:"last_top_logits"`
	Greedy        []int32   `json:"greedy"`
	GreedyGap     []float64 `json:"greedy_gap"`
}

func prompts(t *testing.T) (map[string]prompt, []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(oracle))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]prompt
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	if len(names) != 9 {
		t.Fatalf("%d prompts, wanted 9", len(names))
	}
	return all, names
}

// logitTolerance: f16 operands and cache, measured for Pocket at 0.014 and 0.009, may add up; twice that.
const (
	logitTolerance = 0.05
	gapFloor       = 0.1
)

func TestPocketAnswersAsItsOracle(t *testing.T) {
	ckpt, err := weights.Open(pocket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() }) // after the device, which reads it in place
	mapped := mappings(t, "model.safetensors")
	d := open(t, fake.Configuration{Seed: 1, Threads: 2, DelayMicros: 200}, metal.Options{Mapped: mapped})
	n, err := model.Load(d, ckpt, model.Options{WindowTokens: 4096, MaxSequences: 1, ChunkTokens: 512})
	if err != nil {
		t.Fatal(err)
	}
	all, names := prompts(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			answers(t, n, all[name])
		})
	}
	if list := d.Degraded(); len(list) > 0 {
		t.Error(list)
	}
	counted := fake.Count()
	t.Logf("counted: %+v", counted)
	memory := n.MemoryBytes()
	inPlace := int64(counted.MappedBytes) - memory.KVPages // pools of pages are mappings too
	if len(mapped) > 0 && (inPlace <= 0 || inPlace > memory.Weights*5/4) {
		t.Errorf("%d bytes of %d are used in place", inPlace, memory.Weights)
	}
}

// mappings finds the mappings of a file in this process, where the system can tell; elsewhere weights are copied.
func mappings(t *testing.T, file string) (out [][]byte) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(text), "\n") {
		var from, to uintptr
		if !strings.HasSuffix(line, "/"+file) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		out = append(out, unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&from))), to-from))
	}
	return out
}

func answers(t *testing.T, n *model.Network, want prompt) {
	s, err := n.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	forward := func(tokens []int32) []float32 {
		rows, err := n.Forward(context.Background(), []pass.Segment{{Seq: s, Tokens: tokens, Logits: pass.LogitsLast}})
		if err != nil {
			t.Fatal(err)
		}
		return rows[0][0]
	}
	var last []float32
	for at := 0; at < len(want.IDs); at += 512 {
		last = forward(want.IDs[at:min(at+512, len(want.IDs))])
	}
	worst := 0.0
	for i, id := range want.LastTopIDs {
		worst = max(worst, math.Abs(float64(last[id])-want.LastTopLogits[i]))
	}
	t.Logf("largest difference of the last logits: %.4f", worst)
	if !(worst <= logitTolerance) {
		t.Errorf("last logits differ by %f", worst)
	}
	for i, id := range want.Greedy {
		if want.GreedyGap[i] < gapFloor {
			return
		}
		best := 0
		for j, v := range last {
			if v > last[best] {
				best = j
			}
		}
		if int32(best) != id {
			t.Fatalf("greedy step %d: %d, oracle %d (gap %.3f)", i, best, id, want.GreedyGap[i])
		}
		if i+1 < len(want.Greedy) {
			last = forward([]int32{id})
		}
	}
}

// After a rewind by the tape, and after a restore from a point, a sequence continues with the same bits.
func TestPocketRewindsAndRestoresToTheSameLogits(t *testing.T) {
	d := open(t, fake.Configuration{Seed: 2, Threads: 2}, metal.Options{})
	ckpt, err := weights.Open(pocket)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	n, err := model.Load(d, ckpt, model.Options{WindowTokens: 512, MaxSequences: 2, ChunkTokens: 128, ExtraPages: 2,
		TapeTokens: 8})
	if err != nil {
		t.Fatal(err)
	}
	all, _ := prompts(t)
	s, err := n.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	forward := func(s *model.Sequence, tokens ...int32) []float32 {
		rows, err := n.Forward(context.Background(), []pass.Segment{{Seq: s, Tokens: tokens, Logits: pass.LogitsLast}})
		if err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), rows[0][0]...)
	}
	forward(s, all["hello"].IDs...)
	point, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	defer point.Release()
	decode := func(s *model.Sequence) (out [][]float32) {
		for _, id := range []int32{1414, 562, 14, 327} {
			out = append(out, forward(s, id))
		}
		return out
	}
	want := decode(s)
	s.Rewind(4)
	if what := differ(decode(s), want, 0); what != "" {
		t.Errorf("after a rewind: %s", what)
	}
	other, err := n.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Restore(point, point.Len())
	if what := differ(decode(other), want, 0); what != "" {
		t.Errorf("restored: %s", what)
	}
}

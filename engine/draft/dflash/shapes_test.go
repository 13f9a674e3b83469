package dflash

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/engine/draft"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/weights"
)

// published is the configuration of the draft for the 27B.
const published = `{"architectures": ["DFlash2DraftModel"], "model_type": "qwen3", "hidden_size": 5120, "intermediate_size": 17408,
 "num_hidden_layers": 5, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6,
 "rope_theta": 10000000, "rope_parameters": {"rope_type": "default", "rope_theta": 10000000}, "sliding_window": 2048,
 "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 	"sliding_attention"],
 "is_causal": false, "num_target_layers": 64, "vocab_size": 248320, "tie_word_embeddings": false,
 "dflash_config": {"block_size": 8, "conv_group_size": 16, "conv_kernel_size": 2, "mask_token_id": 248070,
  "selector_rank": 256, "selector_top_k": 16, "target_layer_ids": [5, 19, 33, 47, 61]}}`

// odd is a draft of small and uneven shapes, with all optional fields.
const odd = `{"architectures": ["DFlash2DraftModel"], "hidden_size": 96, "intermediate_size": 112,
 "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 1e-5,
 "rope_theta": 50000, "sliding_window": 300, "is_causal": false, "num_target_layers": 9, "vocab_size": 97,
 "output_multiplier": 0.5, "final_logit_softcapping": 7, "input_embedding_scale": 3,
 "dflash_config": {"block_size": 8, "conv_group_size": 16, "conv_kernel_size": 2, "mask_token_id": 96,
  "selector_rank": 24, "selector_top_k": 5, "target_layer_ids": [7, 2]}}`

type shaped struct {
	name  string
	shape []int
}

func (s shaped) elements() int {
	n := 1
	for _, d := range s.shape {
		n *= d
	}
	return n
}

// tensorsOf are the published names and shapes.
func tensorsOf(c Config) (all []shaped) {
	add := func(name string, shape ...int) { all = append(all, shaped{name, shape}) }
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	add("fc.weight", h, len(c.Taps)*h)
	add("hidden_norm.weight", h)
	add("norm.weight", h)
	add("candidate_selector.hidden_projection.weight", c.Rank, h)
	add("candidate_selector.predecessor_codebook", c.Vocab, c.Rank)
	add("candidate_selector.successor_codebook", c.Vocab, c.Rank)
	for i := range c.Layers {
		at := "layers." + strconv.Itoa(i) + "."
		add(at+"input_layernorm.weight", h)
		add(at+"post_attention_layernorm.weight", h)
		add(at+"self_attn.q_proj.weight", q, h)
		add(at+"self_attn.k_proj.weight", kv, h)
		add(at+"self_attn.v_proj.weight", kv, h)
		add(at+"self_attn.o_proj.weight", h, q)
		add(at+"self_attn.q_norm.weight", c.HeadDim)
		add(at+"self_attn.k_norm.weight", c.HeadDim)
		add(at+"mlp.gate_proj.weight", c.Intermediate, h)
		add(at+"mlp.up_proj.weight", c.Intermediate, h)
		add(at+"mlp.down_proj.weight", h, c.Intermediate)
		for _, conv := range []string{"attention_conv", "mlp_conv"} {
			add(at+conv+".base_kernel", 2, 2, h)
			add(at+conv+".kernel_projection.weight", 4*h/c.GroupSize, h)
		}
	}
	return all
}

// write makes a draft's folder; fill writes a tensor's values, and nil leaves a hole of zeros.
func write(t testing.TB, config string, tensors []shaped, prefix string, fill func(*bufio.Writer, shaped)) string {
	t.Helper()
	dir := t.TempDir()
	header := map[string]any{}
	at := 0
	for _, s := range tensors {
		header[prefix+s.name] = map[string]any{"dtype": "BF16", "shape": s.shape,
			"data_offsets": []int{at, at + 2*s.elements()}}
		at += 2 * s.elements()
	}
	text, err := json.Marshal(header)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	w.Write(text)
	if fill != nil {
		for _, s := range tensors {
			fill(w, s)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(8 + len(text) + at)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// random fills tensors with values of a trained model's size, in runs of a prime length, so that no two rows are alike.
func random(seed uint64) func(*bufio.Writer, shaped) {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(w *bufio.Writer, s shaped) {
		mean, scale := 0.0, 1/math.Sqrt(float64(s.shape[len(s.shape)-1]))
		switch {
		case strings.HasSuffix(s.name, "norm.weight"):
			mean, scale = 1, 0.2
		case strings.HasSuffix(s.name, "base_kernel"):
			mean, scale = 0.5, 0.2
		case strings.HasSuffix(s.name, "_codebook"):
			scale = 1
		}
		n := s.elements()
		run := make([]byte, 0, 2*65521)
		for range min(n, 65521) {
			run = binary.LittleEndian.AppendUint16(run, weights.BF16Of(float32(mean+scale*r.NormFloat64())))
		}
		for left := 2 * n; left > 0; left -= len(run) {
			w.Write(run[:min(left, len(run))])
		}
	}
}

func open(t testing.TB, dir string) *Checkpoint {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// shapesOnly is a device that holds no weights.
type shapesOnly struct {
	device.Device
	matrices int
}

type shapeMatrix struct{ out, in int }

func (m shapeMatrix) Out() int     { return m.out }
func (m shapeMatrix) In() int      { return m.in }
func (m shapeMatrix) Bytes() int64 { return 2 * int64(m.out) * int64(m.in) }

func (d *shapesOnly) Matrix(m device.MatrixData) (device.Matrix, error) {
	d.matrices++
	if len(m.Data) != 2*m.Out*m.In {
		return nil, fmt.Errorf("%s: %d bytes for %d by %d", m.Name, len(m.Data), m.Out, m.In)
	}
	return shapeMatrix{m.Out, m.In}, nil
}

// The published draft's 81 tensors are read under their names, in a file of its size that is one hole, so that it takes
// no disk and no memory.
func TestPublishedNamesAndShapesAreLoaded(t *testing.T) {
	c, err := ParseConfig([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fits(Target{Hidden: 5120, Layers: 64, Vocab: 248320, Tokens: 248077}); err != nil {
		t.Fatal(err)
	}
	tensors := tensorsOf(c)
	elements := 0
	for _, s := range tensors {
		elements += s.elements()
	}
	if len(tensors) != 81 || elements != 1_924_404_480 {
		t.Fatalf("%d tensors of %d weights, published are 81 of 1,924,404,480", len(tensors), elements)
	}
	n, dev, err := loadShapes(t, published, tensors, "")
	if err != nil {
		t.Fatal(err)
	}
	// Base kernels and norms are kept in f32.
	if floats := int64(4 * (2*2*2*5120*5 + 5120*12 + 2*128*5)); n.weightBytes < 2*1_924_404_480 ||
		n.weightBytes > 2*1_924_404_480+floats || dev.matrices != 47 {
		t.Errorf("%d matrices, %d bytes of weights", dev.matrices, n.weightBytes)
	}
	if rings := n.kv.Bytes(); rings != 10*256*5*2*8*128*4 {
		t.Errorf("a ring of %d bytes", rings)
	}
}

func TestEveryTensorIsWantedInEveryPublishedForm(t *testing.T) {
	c, err := ParseConfig([]byte(odd))
	if err != nil {
		t.Fatal(err)
	}
	tensors := tensorsOf(c)
	for _, prefix := range []string{"", "model.", "draft."} {
		if _, _, err := loadShapes(t, odd, tensors, prefix); err != nil {
			t.Fatalf("prefix %q: %v", prefix, err)
		}
	}
	for i, missing := range tensors {
		if missing.name == "fc.weight" {
			continue // without it nothing tells a draft
		}
		_, _, err := loadShapes(t, odd, slices.Delete(slices.Clone(tensors), i, i+1), "")
		if err == nil || !strings.Contains(err.Error(), missing.name) {
			t.Errorf("without %s: %v", missing.name, err)
		}
		other := slices.Clone(tensors)
		other[i].shape = append(slices.Clone(missing.shape[:len(missing.shape)-1]),
			missing.shape[len(missing.shape)-1]+1)
		if _, _, err := loadShapes(t, odd, other, ""); err == nil || !strings.Contains(err.Error(), missing.name) {
			t.Errorf("with a %s of %v: %v", missing.name, other[i].shape, err)
		}
	}
}

func loadShapes(t *testing.T, config string, tensors []shaped, prefix string) (*Network, *shapesOnly, error) {
	t.Helper()
	from := open(t, write(t, config, tensors, prefix, nil))
	c := from.Config
	real := cpu.New(1)
	t.Cleanup(func() { real.Close() })
	dev := &shapesOnly{Device: real}
	target := shapeMatrix{c.Vocab, c.Hidden}
	n, err := Load(dev, from, Options{Embedding: target, Head: target, Sequences: 1})
	return n, dev, err
}

// A device reads in place what it holds as it is in the file, and is not given 16-bit weights that become 4 bit.
func TestFloatFilesThatAreQuantizedAreNotMappedForTheDevice(t *testing.T) {
	for _, c := range []struct {
		dir      string
		quantize bool
		mapped   bool
	}{{"testdata/bf16", true, false}, {"testdata/bf16", false, true}, {pocketDir, true, true}, {pocketDir, false,
		true}} {
		if runs := open(t, c.dir).Mappings(c.quantize); (len(runs) > 0) != c.mapped {
			t.Errorf("%s, quantize %v: %d mappings", c.dir, c.quantize, len(runs))
		}
	}
}

// lonely is a sequence without a network.
type lonely struct {
	pass.Sequence
	length  int
	section pass.Section
	onSave  func() pass.Section
}

func (s *lonely) Len() int                           { return s.length }
func (s *lonely) Section() pass.Section              { return s.section }
func (s *lonely) OnSave(section func() pass.Section) { s.onSave = section }

// world is a loaded draft of random weights beside its plain evaluation.
type world struct {
	t     *testing.T
	n     *Network
	p     *Proposer
	plain *plain
	head  weights.Matrix
	r     *rand.Rand
}

func newWorld(t *testing.T, config string, sequences int, head weights.Matrix) *world {
	c, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	from := open(t, write(t, config, tensorsOf(c), "", random(3)))
	dev := cpu.New(0)
	t.Cleanup(func() { dev.Close() })
	embedding, err := dev.Matrix(model.OnDevice(head))
	if err != nil {
		t.Fatal(err)
	}
	n, err := Load(dev, from, Options{Embedding: embedding, Head: embedding, Sequences: sequences})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, n, NewProposer(c, func() *Network { return n }, c.Block-1), &plain{c: c, files: from.files,
		embed: head},
		head, rand.New(rand.NewPCG(9, 9))}
}

// follower is a sequence in the draft, and its context rows by the plain evaluation.
type follower struct {
	seq   *lonely
	draft *sequence
	first int
	rows  vectors
}

// begin follows a sequence of some length of which the draft knows nothing.
func (w *world) begin(length int) *follower {
	f := &follower{seq: &lonely{length: length}, first: length}
	f.draft = w.p.Begin(f.seq, nil).(*sequence)
	return f
}

// advance processes tokens of which the network kept some.
func (w *world) advance(f *follower, tokens, kept int) {
	c := w.n.config
	segment := pass.Segment{Tokens: make([]int32, tokens)}
	f.draft.Want(&segment)
	width := len(c.Taps) * c.Hidden
	var taps vectors
	for i := range segment.Taps {
		segment.Taps[i] = float32(w.r.NormFloat64())
		if i%width == 0 {
			taps = append(taps, nil)
		}
		taps[len(taps)-1] = append(taps[len(taps)-1], float64(segment.Taps[i]))
	}
	f.seq.length += kept
	if err := f.draft.Kept(w.t.Context(), segment.Tokens[:kept]); err != nil {
		w.t.Fatal(err)
	}
	if missing := kept - len(taps); missing > 0 {
		f.first, f.rows = f.first+len(f.rows)+missing, nil
	}
	f.rows = append(f.rows, w.plain.context(taps[:min(kept, len(taps))])...)
	if extra := len(f.rows) - c.Window; extra > 0 { // never seen again
		f.first, f.rows = f.first+extra, f.rows[extra:]
	}
}

// check proposes for all followers together and compares final rows and scores with the plain evaluation.
func (w *world) check(tolerance float64, most []int, followers ...*follower) {
	w.t.Helper()
	c := w.n.config
	var asks []draft.Ask
	var blocks []vectors
	for i, f := range followers {
		anchor := w.r.Int32N(int32(c.Vocab))
		tokens := []int32{anchor}
		for range most[i] {
			tokens = append(tokens, c.Mask)
		}
		blocks = append(blocks, w.plain.block(tokens, f.seq.length, f.first, f.rows)[1:])
		asks = append(asks, greedy(f.draft, anchor, most[i]))
	}
	if err := w.p.Propose(w.t.Context(), asks); err != nil || w.plain.err != nil {
		w.t.Fatal(err, w.plain.err)
	}
	at := 0
	for i, rows := range blocks {
		before := asks[i].Last
		if len(*asks[i].Drafted) != most[i] {
			w.t.Fatalf("sequence %d: %d tokens, wanted %d", i, len(*asks[i].Drafted), most[i])
		}
		for r, row := range rows {
			got := w.n.work.selected.Floats()[at*c.Hidden:][:c.Hidden]
			for f := range row {
				if d := math.Abs(float64(got[f]) - row[f]); !(d <= tolerance) {
					w.t.Fatalf("sequence %d, row %d, channel %d: %g, wanted %g", i, r+1, f, got[f], row[f])
				}
			}
			ids, scores := w.n.candidates(at, nil, nil)
			w.n.score(at, before, ids, scores)
			for k, want := range w.plain.scores(row, w.head, before, ids) {
				if d := math.Abs(float64(scores[k]) - want); !(d <= 3*tolerance) {
					w.t.Fatalf("sequence %d, row %d: candidate %d has %g, wanted %g", i, r+1, ids[k], scores[k], want)
				}
			}
			before = (*asks[i].Drafted)[r].ID
			at++
		}
	}
}

package dflash

import (
	"encoding/json"
	"fmt"
	"slices"

	"slipway/engine/draft"
)

// Config is what a draft's config.json says. Counts and widths are in elements.
type Config struct {
	Hidden, Intermediate    int
	Layers                  int
	Heads, KVHeads, HeadDim int
	Eps                     float32
	Theta                   float64
	Window                  int // a row sees positions less than this away

	TargetLayers int   // of the model that it is made for
	Vocab        int   // of that model
	Taps         []int // layers of that model whose outputs it reads
	Block        int   // rows that it was trained on: the anchor and the masks
	Mask         int32 // token of the rows to be drafted

	GroupSize  int // channels that share a kernel of a dynamic convolution
	Rank, TopK int // of the selector

	Multiplier, Softcap, EmbeddingScale float32 // of logits and embeddings; Softcap 0: none
}

// Target is what a draft must fit.
type Target struct {
	Hidden, Layers, Vocab int
	Tokens                int // ids of the tokenizer
}

// MisfitError says why a draft cannot be used.
type MisfitError struct{ Sentence string }

func (e *MisfitError) Error() string { return e.Sentence }

func misfit(format string, args ...any) error { return &MisfitError{fmt.Sprintf(format, args...)} }

// convTaps is the kernel size of the dynamic convolutions, the only one published.
const convTaps = 2

// mostCandidates bounds the selector's choice in a row: what a device chooses at a time.
const mostCandidates = 32

// ParseConfig reads a draft's configuration and refuses what this package does not compute. Errors are *MisfitError.
func ParseConfig(text []byte) (Config, error) {
	raw := struct {
		Architectures []string `json:"architectures"`
		Hidden        int      `json:"hidden_size"`
		Intermediate  int      `json:"intermediate_size"`
		Layers        int      `json:"num_hidden_layers"`
		Heads         int      `json:"num_attention_heads"`
		KVHeads       int      `json:"num_key_value_heads"`
		HeadDim       int      `json:"head_dim"`
		Act           string   `json:"hidden_act"`
		Eps           float64  `json:"rms_norm_eps"`
		Theta         float64  `json:"rope_theta"`
		Rope          struct {
			Type  string  `json:"rope_type"`
			Theta float64 `json:"rope_theta"`
		} `json:"rope_parameters"`
		Interleaved    bool     `json:"rope_interleaved"`
		Window         int      `json:"sliding_window"`
		LayerTypes     []string `json:"layer_types"`
		Causal         bool     `json:"is_causal"`
		Bias           bool     `json:"attention_bias"`
		TargetLayers   int      `json:"num_target_layers"`
		Vocab          int      `json:"vocab_size"`
		Multiplier     *float32 `json:"output_multiplier"`
		Softcap        *float32 `json:"final_logit_softcapping"`
		EmbeddingScale *float32 `json:"input_embedding_scale"`
		DFlash         struct {
			Block     int    `json:"block_size"`
			GroupSize int    `json:"conv_group_size"`
			ConvTaps  int    `json:"conv_kernel_size"`
			Mask      *int32 `json:"mask_token_id"`
			Rank      int    `json:"selector_rank"`
			TopK      int    `json:"selector_top_k"`
			Taps      []int  `json:"target_layer_ids"`
			Causal    bool   `json:"causal"`
		} `json:"dflash_config"`
	}{Act: "silu", Eps: 1e-6}
	if err := json.Unmarshal(text, &raw); err != nil {
		return Config{}, misfit("the draft's config.json cannot be read: %v", err)
	}
	d := raw.DFlash
	c := Config{Hidden: raw.Hidden, Intermediate: raw.Intermediate, Layers: raw.Layers, Heads: raw.Heads,
		KVHeads: raw.KVHeads,
		HeadDim: raw.HeadDim, Eps: float32(
			raw.Eps), Theta: raw.Theta, Window: raw.Window, TargetLayers: raw.TargetLayers,
		Vocab: raw.Vocab, Taps: d.Taps, Block: d.Block, GroupSize: d.GroupSize, Rank: d.Rank, TopK: d.TopK,
		Multiplier: 1, EmbeddingScale: 1}
	if raw.Rope.Theta != 0 {
		c.Theta = raw.Rope.Theta
	}
	for _, f := range []struct {
		to   *float32
		from *float32
	}{{&c.Multiplier, raw.Multiplier}, {&c.Softcap, raw.Softcap}, {&c.EmbeddingScale, raw.EmbeddingScale}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if d.Mask != nil {
		c.Mask = *d.Mask
	}
	other := func(kind string) bool { return kind != "sliding_attention" }
	switch {
	case !slices.Contains(raw.Architectures, "DFlash2DraftModel"):
		return c, misfit("config.json names the architecture %v, a DFlash2 draft is DFlash2DraftModel",
			raw.Architectures)
	case raw.Causal || d.Causal:
		return c, misfit("config.json says is_causal, and a DFlash2 block sees itself whole")
	case raw.Act != "silu" || raw.Bias || raw.Interleaved || raw.Rope.Type != "" && raw.Rope.Type != "default":
		return c, misfit(
			"config.json asks for hidden_act %q, attention_bias %v, rope_interleaved %v, rope_type %q: "+
				"silu, false, false and default are supported", raw.Act, raw.Bias, raw.Interleaved, raw.Rope.Type)
	case slices.ContainsFunc(raw.LayerTypes, other) || len(raw.LayerTypes) > 0 && len(raw.LayerTypes) != c.Layers:
		return c, misfit("config.json has layer_types %v: %d times sliding_attention are supported", raw.LayerTypes,
			c.Layers)
	case d.ConvTaps != convTaps:
		return c, misfit("config.json has conv_kernel_size %d: %d is supported", d.ConvTaps, convTaps)
	case d.Mask == nil:
		return c, misfit("config.json has no dflash_config.mask_token_id")
	}
	return c, c.check()
}

// check refuses numbers that mean nothing.
func (c Config) check() error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"hidden_size", c.Hidden, 1 << 16}, {"intermediate_size", c.Intermediate, 1 << 20}, {"num_hidden_layers",
			c.Layers, 64},
		{"num_attention_heads", c.Heads, 1 << 10}, {"num_key_value_heads", c.KVHeads, 1 << 10}, {"head_dim", c.HeadDim,
			1 << 10},
		{"sliding_window", c.Window, 1 << 20}, {"num_target_layers", c.TargetLayers, 1 << 10}, {"vocab_size", c.Vocab,
			1 << 24},
		{"dflash_config.conv_group_size", c.GroupSize, c.Hidden}, {"dflash_config.selector_rank", c.Rank, 1 << 16},
		{"dflash_config.selector_top_k", c.TopK, mostCandidates}, {"dflash_config.target_layer_ids", len(c.Taps), 64},
	} {
		if f.value < 1 || f.value > f.max {
			return misfit("config.json has %s %d: 1 to %d are possible", f.name, f.value, f.max)
		}
	}
	switch {
	case c.Block < 2 || c.Block > draft.MostTokens+1:
		return misfit("config.json has dflash_config.block_size %d: 2 to %d are supported", c.Block, draft.MostTokens+1)
	case c.Hidden%c.GroupSize != 0 || c.Heads%c.KVHeads != 0 || c.HeadDim%2 != 0:
		return misfit(
			"config.json has hidden_size %d in groups of %d, %d heads for %d of keys, and head_dim %d: "+
				"they do not divide", c.Hidden, c.GroupSize, c.Heads, c.KVHeads, c.HeadDim)
	case !(c.Eps > 0) || !(c.Theta > 1) || !(c.Multiplier > 0) || !(c.EmbeddingScale > 0) || !(c.Softcap >= 0):
		return misfit(
			"config.json has rms_norm_eps %g, rope_theta %g, output_multiplier %g, "+
				"input_embedding_scale %g, final_logit_softcapping %g: they must be positive",
			c.Eps, c.Theta, c.Multiplier, c.EmbeddingScale, c.Softcap)
	case c.TopK > c.Vocab:
		return misfit("config.json has selector_top_k %d of a vocabulary of %d", c.TopK, c.Vocab)
	}
	return nil
}

// Fits says why a draft cannot be used for a model. Its error is a *MisfitError.
func (c Config) Fits(t Target) error {
	switch {
	case c.TargetLayers != t.Layers || c.Hidden != t.Hidden:
		return misfit("it is made for another model, of %d layers with %d channels: this model has %d with %d",
			c.TargetLayers, c.Hidden, t.Layers, t.Hidden)
	case c.Vocab != t.Vocab:
		return misfit("it is made for another tokenizer, of %d tokens: this model has %d", c.Vocab, t.Vocab)
	case c.Mask < 0 || int(c.Mask) >= t.Tokens:
		return misfit("its mask is token %d, and this model's tokenizer has %d", c.Mask, t.Tokens)
	}
	for i, tap := range c.Taps {
		if tap < 0 || tap >= t.Layers || slices.Contains(c.Taps[:i], tap) {
			return misfit("it reads layers %v of a model, and this one has layers 0 to %d, each once", c.Taps,
				t.Layers-1)
		}
	}
	return nil
}

// RowBytes is what a state keeps of a position: its context row in BF16.
func (c Config) RowBytes() int { return 2 * c.Hidden }

// groups is how many groups of channels have a kernel of their own.
func (c Config) groups() int { return c.Hidden / c.GroupSize }

// Package arch describes networks: what a family reads out of config.json, and what package model builds from it.
package arch

import "slipway/profiles"

// Mixer is the part of a layer that mixes tokens.
type Mixer int

const (
	LinearAttention Mixer = iota // gated delta net, with a recurrent state
	FullAttention                // softmax attention, with keys and values
)

// FeedForward is the part of a layer that treats every token by itself.
type FeedForward int

const (
	Dense   FeedForward = iota
	Mixture             // a mixture of experts; package model refuses it, no family builds one yet
)

// Layer is the kinds of one layer's two parts.
type Layer struct {
	Mixer       Mixer
	FeedForward FeedForward
}

// Family is the network side of a model family.
type Family struct {
	// Parse reads config.json and generation_config.json, which may be nil. Errors are *weights.MisfitError that name
	// the field.
	Parse func(config, generation []byte) (*Config, error)
}

// Config is what config.json and generation_config.json say about the network. Counts and widths are in elements.
type Config struct {
	ModelType    string  // of the text model, e.g. "qwen3_5_text"
	VocabSize    int     // rows of lm_head, padding included
	MaxPositions int     // largest window that the model was made for
	EOS          []int32 // ids that end a reply: config.json and generation_config.json together, no id twice
	Tied         bool    // lm_head is the embedding

	Hidden, Intermediate int
	Layers               []Layer
	Eps                  float32

	Heads, KVHeads, HeadDim int
	RotaryDims              int
	RopeTheta               float64

	KeyHeads, ValueHeads int // of gated delta net layers
	KeyDim, ValueDim     int
	ConvTaps             int

	MTPLayers int // as config.json says; whether the weights are there the checkpoint knows
}

// ConvChannels is the width of the convolution: q | k | v.
func (c *Config) ConvChannels() int { return 2*c.KeyHeads*c.KeyDim + c.ValueHeads*c.ValueDim }

// AttentionLayers counts the full-attention layers.
func (c *Config) AttentionLayers() int {
	n := 0
	for _, layer := range c.Layers {
		if layer.Mixer == FullAttention {
			n++
		}
	}
	return n
}

// Geometry is the shape that sizing prices. The bytes of weights and MTP head are left at 0: config.json does not say
// them.
func (c *Config) Geometry() profiles.Geometry {
	return profiles.Geometry{
		HiddenSize: c.Hidden, IntermediateSize: c.Intermediate, VocabSize: c.VocabSize,
		FullAttentionLayers: c.AttentionLayers(), LinearLayers: len(c.Layers) - c.AttentionLayers(),
		AttentionHeads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		LinearKeyHeads: c.KeyHeads, LinearValueHeads: c.ValueHeads, LinearKeyDim: c.KeyDim, LinearValueDim: c.ValueDim,
		ConvKernel: c.ConvTaps, MaxPositions: c.MaxPositions, MTPLayers: c.MTPLayers,
	}
}

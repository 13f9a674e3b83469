// Package profiles says what a run wants (profile files) and what a machine can give (sizing). It is pure: values in,
// values out, no disk, no clock, no network. The installer plans with it and the server admits requests with it, so
// that both sides use one rule. Sources of the formulas: the project's sizing specification, section 3; geometry from
// a model's own config.json.
package profiles

import "fmt"

// Geometry is the shape of a Qwen3.5-class hybrid, as far as memory depends on it. Field names follow config.json.
// All counts are elements, heads, layers or tokens; only the two fields that end in Bytes are bytes.
type Geometry struct {
	HiddenSize          int `toml:"hidden_size" json:"hidden_size"`
	IntermediateSize    int `toml:"intermediate_size" json:"intermediate_size"`
	VocabSize           int `toml:"vocab_size" json:"vocab_size"`
	FullAttentionLayers int `toml:"full_attention_layers" json:"full_attention_layers"`
	LinearLayers        int `toml:"linear_layers" json:"linear_layers"`
	AttentionHeads      int `toml:"attention_heads" json:"attention_heads"`
	KVHeads             int `toml:"kv_heads" json:"kv_heads"`
	HeadDim             int `toml:"head_dim" json:"head_dim"`
	LinearKeyHeads      int `toml:"linear_key_heads" json:"linear_key_heads"`
	LinearValueHeads    int `toml:"linear_value_heads" json:"linear_value_heads"`
	LinearKeyDim        int `toml:"linear_key_dim" json:"linear_key_dim"`
	LinearValueDim      int `toml:"linear_value_dim" json:"linear_value_dim"`
	ConvKernel          int `toml:"conv_kernel" json:"conv_kernel"`
	MaxPositions        int `toml:"max_positions" json:"max_positions"` // the model's own window
	MTPLayers           int `toml:"mtp_layers" json:"mtp_layers"`       // 0: the weights carry no MTP head

	WeightsBytes int64 `toml:"weights_bytes" json:"weights_bytes"` // everything resident except MTP head and draft
	MTPBytes     int64 `toml:"mtp_bytes" json:"mtp_bytes"`         // the MTP head when it is used; 0 without one
}

// DraftGeometry is a separate block-parallel draft model (DFlash2): its resident weights, and the sliding window of
// context that each sequence, and each restore point, carries.
type DraftGeometry struct {
	Layers     int `toml:"layers" json:"layers"`
	KVHeads    int `toml:"kv_heads" json:"kv_heads"`
	HeadDim    int `toml:"head_dim" json:"head_dim"`
	RingTokens int `toml:"ring_tokens" json:"ring_tokens"` // sliding window of the draft
	// resident form (quantised at load), not the download
	WeightsBytes int64 `toml:"weights_bytes" json:"weights_bytes"`
}

// What the engine keeps beside the sliding window: a ring has whole pages for a window and a block wherever they begin
// in a page, and context rows are moved only when so many are too old.
const (
	draftPageTokens = 256
	mostDraftBlock  = 8
	draftSlackRows  = 256
)

// RingBytes is one sequence's ring of context: keys and values of every layer, in the device's own format whatever the
// trunk's, as those of the MTP head.
func (d DraftGeometry) RingBytes(trunk KVFormat) int64 {
	pages := (d.RingTokens+mostDraftBlock-2)/draftPageTokens + 2
	own := F16
	if trunk == F32 {
		own = F32
	}
	return int64(pages) * draftPageTokens * int64(d.Layers) * 2 * int64(d.KVHeads) * own.rowBytes(d.HeadDim)
}

// PointBytes is what a restore point carries of a draft: the context rows of a window, 16 bit, as wide as the model.
func (d DraftGeometry) PointBytes(hiddenSize int) int64 {
	return int64(d.RingTokens) * int64(hiddenSize) * 2
}

// SequenceBytes is what a sequence holds of a draft: its ring, and the context rows for its points.
func (d DraftGeometry) SequenceBytes(trunk KVFormat, hiddenSize int) int64 {
	return d.RingBytes(trunk) + d.PointBytes(hiddenSize) + draftSlackRows*int64(hiddenSize)*2
}

// StateBytes is the recurrent state of one sequence: per linear layer the delta-rule matrix of each value head and the
// convolution's last kernel-1 inputs, all f32. For the 27B: 156,893,184 bytes (149.625 MiB).
func (g Geometry) StateBytes() int64 {
	recurrent := int64(g.LinearValueHeads) * int64(g.LinearKeyDim) * int64(g.LinearValueDim)
	convChannels := 2*int64(g.LinearKeyHeads)*int64(g.LinearKeyDim) + int64(g.LinearValueHeads)*int64(g.LinearValueDim)
	conv := int64(g.ConvKernel-1) * convChannels
	return (recurrent + conv) * 4 * int64(g.LinearLayers)
}

// KVBytesPerToken is what one token of context costs in all full-attention layers, keys and values, in a KV format.
func (g Geometry) KVBytesPerToken(f KVFormat) int64 {
	return int64(g.FullAttentionLayers) * 2 * int64(g.KVHeads) * f.rowBytes(g.HeadDim)
}

// MTPKVBytesPerToken is the MTP head's own attention cache, kept in the device's own format whatever the trunk's: f32
// where the trunk has f32, which is the CPU's, else f16.
func (g Geometry) MTPKVBytesPerToken(trunk KVFormat) int64 {
	own := F16
	if trunk == F32 {
		own = F32
	}
	return int64(g.MTPLayers) * 2 * int64(g.KVHeads) * own.rowBytes(g.HeadDim)
}

// Validate refuses a shape that the formulas cannot describe; the message names the field.
func (g Geometry) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"hidden_size", g.HiddenSize}, {"intermediate_size", g.IntermediateSize}, {"vocab_size", g.VocabSize},
		{"full_attention_layers", g.FullAttentionLayers}, {"linear_layers", g.LinearLayers},
		{"attention_heads", g.AttentionHeads}, {"kv_heads", g.KVHeads}, {"head_dim", g.HeadDim},
		{"linear_key_heads", g.LinearKeyHeads}, {"linear_value_heads", g.LinearValueHeads},
		{"linear_key_dim", g.LinearKeyDim}, {"linear_value_dim", g.LinearValueDim},
		{"conv_kernel", g.ConvKernel}, {"max_positions", g.MaxPositions},
	} {
		if f.value <= 0 || f.value > 1<<24 {
			return fmt.Errorf("geometry: %s is %d, must be from 1 to %d", f.name, f.value, 1<<24)
		}
	}
	switch {
	case g.MaxPositions < WindowStepTokens:
		return fmt.Errorf("geometry: max_positions is %d, must be at least %d", g.MaxPositions, WindowStepTokens)
	case g.WeightsBytes <= 0 || g.WeightsBytes > 1<<50:
		return fmt.Errorf("geometry: weights_bytes is %d, must be from 1 to %d", g.WeightsBytes, int64(1)<<50)
	case g.MTPLayers < 0 || g.MTPLayers > 8:
		return fmt.Errorf("geometry: mtp_layers is %d, must be from 0 to 8", g.MTPLayers)
	case (g.MTPLayers == 0) != (g.MTPBytes == 0) || g.MTPBytes < 0:
		return fmt.Errorf("geometry: mtp_layers is %d and mtp_bytes is %d: both are given or neither", g.MTPLayers,
			g.MTPBytes)
	}
	return nil
}

// Validate refuses a draft that the formulas cannot describe.
func (d DraftGeometry) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"layers", d.Layers}, {"kv_heads", d.KVHeads}, {"head_dim", d.HeadDim}, {"ring_tokens", d.RingTokens}} {
		if f.value <= 0 || f.value > 1<<20 {
			return fmt.Errorf("draft geometry: %s is %d, must be from 1 to %d", f.name, f.value, 1<<20)
		}
	}
	if d.WeightsBytes <= 0 || d.WeightsBytes > 1<<50 {
		return fmt.Errorf("draft geometry: weights_bytes is %d, must be from 1 to %d", d.WeightsBytes, int64(1)<<50)
	}
	return nil
}

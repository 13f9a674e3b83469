package qwen35

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"slipway/engine/model/arch"
	"slipway/engine/weights"
)

// ModelTypes are the values of model_type in config.json that are of this family.
var ModelTypes = []string{"qwen3_5", "qwen3_5_text"}

// Network is the network side of the family.
var Network = arch.Family{Parse: parseConfig}

// maxDim bounds every dimension of a config, far above any model of the family, so that products stay in range.
const maxDim = 1 << 24

// parseConfig reads the two files; generation may be nil. Errors are *weights.MisfitError that name the field.
func parseConfig(config, generation []byte) (*arch.Config, error) {
	var top struct {
		ModelType string          `json:"model_type"`
		Text      json.RawMessage `json:"text_config"`
		Tied      *bool           `json:"tie_word_embeddings"`
		EOS       json.RawMessage `json:"eos_token_id"`
	}
	if err := json.Unmarshal(config, &top); err != nil {
		return nil, unread("", err, "a model configuration")
	}
	text := config
	if len(top.Text) > 0 && string(top.Text) != "null" {
		text = top.Text
	}
	var f fields
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, unread("text_config", err, "the configuration of a text model")
	}
	if f.ModelType != "" && !slices.Contains(ModelTypes, f.ModelType) {
		return nil, misfit("model_type", fmt.Sprintf("%q in text_config", f.ModelType), "one of "+
			strings.Join(ModelTypes, ", "))
	}
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	if f.Tied == nil && top.Tied != nil {
		c.Tied = *top.Tied
	}
	if c.ModelType == "" {
		c.ModelType = top.ModelType
	}
	for _, eos := range []struct {
		file string
		raw  json.RawMessage
	}{{"config.json", f.EOS}, {"config.json", top.EOS}, {"generation_config.json", generationEOS(generation)}} {
		if err := addEOS(c, eos.file, eos.raw); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// unread says why JSON did not fit: by field where one is of another type.
func unread(field string, err error, wanted string) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) && typed.Field != "" {
		if typed.Type.Kind() == reflect.Int {
			return misfit(typed.Field, typed.Value, "a whole number, written out")
		}
		return misfit(typed.Field, typed.Value, "a value of the type "+typed.Type.String())
	}
	return misfit(field, "text that does not parse: "+err.Error(), wanted)
}

func misfit(field, found, wanted string) error {
	return &weights.MisfitError{File: "config.json", Tensor: field, Found: found, Wanted: wanted}
}

// fields is the text part of config.json.
type fields struct {
	ModelType    string          `json:"model_type"`
	Vocab        int             `json:"vocab_size"`
	Hidden       int             `json:"hidden_size"`
	Intermediate int             `json:"intermediate_size"`
	Layers       int             `json:"num_hidden_layers"`
	Heads        int             `json:"num_attention_heads"`
	KVHeads      int             `json:"num_key_value_heads"`
	HeadDim      int             `json:"head_dim"`
	Act          string          `json:"hidden_act"`
	MaxPositions int             `json:"max_position_embeddings"`
	Eps          *float64        `json:"rms_norm_eps"`
	Tied         *bool           `json:"tie_word_embeddings"`
	Bias         bool            `json:"attention_bias"`
	OutputGate   *bool           `json:"attn_output_gate"`
	Interval     int             `json:"full_attention_interval"`
	LayerTypes   []string        `json:"layer_types"`
	KeyHeads     int             `json:"linear_num_key_heads"`
	ValueHeads   int             `json:"linear_num_value_heads"`
	KeyDim       int             `json:"linear_key_head_dim"`
	ValueDim     int             `json:"linear_value_head_dim"`
	ConvTaps     int             `json:"linear_conv_kernel_dim"`
	MTPLayers    int             `json:"mtp_num_hidden_layers"`
	MTPEmbed     bool            `json:"mtp_use_dedicated_embeddings"`
	Experts      int             `json:"num_experts"`
	EOS          json.RawMessage `json:"eos_token_id"`
	Rope         *rope           `json:"rope_parameters"`
	RopeScaling  *rope           `json:"rope_scaling"` // where older exports keep a scaling
	RopeTheta    *float64        `json:"rope_theta"`
	Partial      *float64        `json:"partial_rotary_factor"`

	// What other networks do and this one does not; each would change every reply.
	SlidingWindow bool     `json:"use_sliding_window"`
	FinalSoftcap  *float64 `json:"final_logit_softcapping"`
	AttnSoftcap   *float64 `json:"attn_logit_softcapping"`
	LogitScale    *float64 `json:"logit_scale"`
	MLPBias       bool     `json:"mlp_bias"`
}

type rope struct {
	Type    string   `json:"rope_type"`
	OldType string   `json:"type"`
	Theta   *float64 `json:"rope_theta"`
	Partial *float64 `json:"partial_rotary_factor"`
}

func (f *fields) config() (*arch.Config, error) {
	for _, d := range []struct {
		name  string
		value int
	}{
		{"vocab_size", f.Vocab}, {"hidden_size", f.Hidden}, {"intermediate_size", f.Intermediate},
		{"num_hidden_layers", f.Layers},
		{"num_attention_heads", f.Heads}, {"num_key_value_heads", f.KVHeads}, {"head_dim", f.HeadDim},
		{"max_position_embeddings", f.MaxPositions}, {"linear_num_key_heads", f.KeyHeads},
		{"linear_num_value_heads", f.ValueHeads},
		{"linear_key_head_dim", f.KeyDim}, {"linear_value_head_dim", f.ValueDim},
	} {
		if d.value <= 0 || d.value > maxDim {
			return nil, misfit(d.name, fmt.Sprint(d.value), fmt.Sprintf("a number from 1 to %d", maxDim))
		}
	}
	c := &arch.Config{ModelType: f.ModelType, VocabSize: f.Vocab, MaxPositions: f.MaxPositions, Tied: f.Tied != nil &&
		*f.Tied, Hidden: f.Hidden, Intermediate: f.Intermediate,
		Heads: f.Heads, KVHeads: f.KVHeads, HeadDim: f.HeadDim, KeyHeads: f.KeyHeads, ValueHeads: f.ValueHeads,
		KeyDim: f.KeyDim, ValueDim: f.ValueDim, ConvTaps: f.ConvTaps, MTPLayers: f.MTPLayers, Eps: 1e-6}
	if f.Eps != nil {
		c.Eps = float32(*f.Eps)
	}
	switch {
	case f.Layers > 1024:
		return nil, misfit("num_hidden_layers", fmt.Sprint(f.Layers), "at most 1024")
	case f.Act != "" && f.Act != "silu":
		return nil, misfit("hidden_act", fmt.Sprintf("%q", f.Act), `"silu"`)
	case f.Experts > 0:
		return nil, misfit("num_experts", fmt.Sprint(f.Experts), "a dense model")
	case f.Bias:
		return nil, misfit("attention_bias", "true", "false")
	case f.OutputGate != nil && !*f.OutputGate:
		return nil, misfit("attn_output_gate", "false", "true")
	case f.SlidingWindow:
		return nil, misfit("use_sliding_window", "true", "false: attention here sees the whole window")
	case f.FinalSoftcap != nil:
		return nil, misfit("final_logit_softcapping", describe(f.FinalSoftcap), "nothing: logits are not capped here")
	case f.AttnSoftcap != nil:
		return nil, misfit("attn_logit_softcapping", describe(f.AttnSoftcap), "nothing: attention is not capped here")
	case f.LogitScale != nil && *f.LogitScale != 1:
		return nil, misfit("logit_scale", describe(f.LogitScale), "1 or nothing: logits are not scaled here")
	case f.MLPBias:
		return nil, misfit("mlp_bias", "true", "false")
	case f.MTPEmbed:
		return nil, misfit("mtp_use_dedicated_embeddings", "true", "false")
	case f.MTPLayers < 0 || f.MTPLayers > 1:
		return nil, misfit("mtp_num_hidden_layers", fmt.Sprint(f.MTPLayers), "0 or 1")
	case f.ConvTaps != 4:
		return nil, misfit("linear_conv_kernel_dim", fmt.Sprint(f.ConvTaps), "4")
	case f.Heads%f.KVHeads != 0:
		return nil, misfit("num_attention_heads", fmt.Sprint(f.Heads),
			fmt.Sprintf("a multiple of the %d key and value heads", f.KVHeads))
	case f.ValueHeads%f.KeyHeads != 0:
		return nil, misfit("linear_num_value_heads", fmt.Sprint(f.ValueHeads),
			fmt.Sprintf("a multiple of the %d key heads", f.KeyHeads))
	case !(c.Eps > 0 && c.Eps < 1):
		return nil, misfit("rms_norm_eps", fmt.Sprint(c.Eps), "a small positive number")
	}
	if err := f.layerTypes(c); err != nil {
		return nil, err
	}
	return c, f.rotary(c)
}

func (f *fields) layerTypes(c *arch.Config) error {
	c.Layers = make([]arch.Layer, f.Layers)
	if f.LayerTypes == nil {
		if f.Interval <= 0 {
			f.Interval = 4
		}
		for i := range c.Layers {
			if (i+1)%f.Interval == 0 {
				c.Layers[i].Mixer = arch.FullAttention
			}
		}
	} else {
		if len(f.LayerTypes) != f.Layers {
			return misfit("layer_types", fmt.Sprintf("%d entries", len(f.LayerTypes)),
				fmt.Sprintf("%d, one a layer", f.Layers))
		}
		for i, t := range f.LayerTypes {
			if t != "full_attention" && t != "linear_attention" {
				return misfit("layer_types", fmt.Sprintf("%q", t), `"full_attention" or "linear_attention"`)
			}
			if t == "full_attention" {
				c.Layers[i].Mixer = arch.FullAttention
			}
		}
	}
	if n := c.AttentionLayers(); n == 0 || n == f.Layers {
		return misfit("layer_types", fmt.Sprintf("%d full-attention layers of %d", n, f.Layers),
			"a hybrid of both kinds")
	}
	return nil
}

// rotary reads the rope parameters, nested or flat. Scaled positions (yarn, for windows beyond the model's own) change
// every angle and are refused by name.
func (f *fields) rotary(c *arch.Config) error {
	theta, partial := f.RopeTheta, f.Partial
	for _, r := range []*rope{f.Rope, f.RopeScaling} {
		if r == nil {
			continue
		}
		for _, kind := range []string{r.Type, r.OldType} {
			if kind != "" && kind != "default" && kind != "mrope" {
				return misfit("rope_parameters.rope_type", fmt.Sprintf("%q", kind),
					`"default": this engine does not scale positions`)
			}
		}
		if r.Theta != nil {
			theta = r.Theta
		}
		if r.Partial != nil {
			partial = r.Partial
		}
	}
	if theta == nil || !(*theta > 1) || math.IsInf(*theta, 0) {
		return misfit("rope_parameters.rope_theta", describe(theta), "a number above 1")
	}
	factor := 0.25
	if partial != nil {
		factor = *partial
	}
	dims := int(float64(f.HeadDim) * factor)
	if !(factor > 0 && factor <= 1) || dims <= 0 || dims%2 != 0 {
		return misfit("rope_parameters.partial_rotary_factor", describe(partial),
			fmt.Sprintf("a part of head_dim %d that is an even number", f.HeadDim))
	}
	c.RopeTheta, c.RotaryDims = *theta, dims
	return nil
}

func describe(v *float64) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprint(*v)
}

func generationEOS(generation []byte) json.RawMessage {
	var g struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	if len(generation) == 0 || json.Unmarshal(generation, &g) != nil {
		return nil // its own loader reports a broken file; the network does without
	}
	return g.EOS
}

// addEOS takes a number, a list of numbers or null. An id beyond the vocabulary would never come, and no reply would
// end.
func addEOS(c *arch.Config, file string, raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var ids []int32
	if !strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	if err := json.Unmarshal(raw, &ids); err != nil {
		return &weights.MisfitError{File: file, Tensor: "eos_token_id", Found: string(raw), Wanted: "a token id or " +
			"a list of them"}
	}
next:
	for _, id := range ids {
		if id < 0 || int(id) >= c.VocabSize {
			return &weights.MisfitError{File: file, Tensor: "eos_token_id", Found: fmt.Sprint(id),
				Wanted: fmt.Sprintf("an id in [0,%d), the vocabulary", c.VocabSize)}
		}
		for _, known := range c.EOS {
			if known == id {
				continue next
			}
		}
		c.EOS = append(c.EOS, id)
	}
	return nil
}

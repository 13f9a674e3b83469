package model

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"slipway/engine/model/arch"
	"strings"
	"testing"

	"slipway/engine/weights"
)

func pocketConfig(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(pocketQ4 + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func parse(t *testing.T, config any, generation string) (*Config, error) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return ParseConfig(text, []byte(generation))
}

func TestConfigsOfOtherModelsAreRefusedByField(t *testing.T) {
	base := pocketConfig(t)
	rope := func(changes map[string]any) map[string]any {
		return map[string]any{"rope_parameters": with(base["rope_parameters"].(map[string]any), changes)}
	}
	for _, row := range []struct {
		name         string
		changes      map[string]any
		field, found string
	}{
		{"llama", map[string]any{"model_type": "llama"}, "model_type", `"llama"`},
		{"no model type", map[string]any{"model_type": nil}, "model_type", `""`},
		{"the mixture of experts", map[string]any{"model_type": "qwen3_5_moe"}, "model_type", "qwen3_5_moe"},
		{"experts inside", map[string]any{"num_experts": 128}, "num_experts", "128"},
		{"no hidden size", map[string]any{"hidden_size": nil}, "hidden_size", "0"},
		{"no vocabulary", map[string]any{"vocab_size": nil}, "vocab_size", "0"},
		{"negative layers", map[string]any{"num_hidden_layers": -1}, "num_hidden_layers", "-1"},
		{"a billion layers", map[string]any{"num_hidden_layers": 1 << 30}, "num_hidden_layers", "1073741824"},
		{"text in place of a number", map[string]any{"head_dim": "64"}, "head_dim", "string"},
		{"a float in place of a whole number", map[string]any{"num_hidden_layers": json.RawMessage("1e9")},
			"num_hidden_layers", "number 1e9"},
		{"a window beyond all memory", map[string]any{"max_position_embeddings": int64(1e12)},
			"max_position_embeddings", "1000000000000"},
		{"a window larger than any number", map[string]any{
			"max_position_embeddings": json.RawMessage("1000000000000000000000")}, "max_position_embeddings",
			"number 1000000000000000000000"},
		{"sliding window", map[string]any{"use_sliding_window": true}, "use_sliding_window", "true"},
		{"capped logits", map[string]any{"final_logit_softcapping": 30.0}, "final_logit_softcapping", "30"},
		{"capped attention", map[string]any{"attn_logit_softcapping": 50.0}, "attn_logit_softcapping", "50"},
		{"scaled logits", map[string]any{"logit_scale": 0.5}, "logit_scale", "0.5"},
		{"bias in the MLP", map[string]any{"mlp_bias": true}, "mlp_bias", "true"},
		{"an end id beyond the vocabulary", map[string]any{"eos_token_id": []int{1, 4_000_000}}, "eos_token_id",
			"4000000"},
		{"a negative end id", map[string]any{"eos_token_id": -1}, "eos_token_id", "-1"},
		{"heads that do not divide", map[string]any{"num_attention_heads": 5}, "num_attention_heads", "5"},
		{"value heads that do not divide", map[string]any{"linear_num_value_heads": 7}, "linear_num_value_heads", "7"},
		{"attention bias", map[string]any{"attention_bias": true}, "attention_bias", "true"},
		{"no output gate", map[string]any{"attn_output_gate": false}, "attn_output_gate", "false"},
		{"gelu", map[string]any{"hidden_act": "gelu"}, "hidden_act", `"gelu"`},
		{"five taps", map[string]any{"linear_conv_kernel_dim": 5}, "linear_conv_kernel_dim", "5"},
		{"two MTP layers", map[string]any{"mtp_num_hidden_layers": 2}, "mtp_num_hidden_layers", "2"},
		{"MTP with an embedding of its own", map[string]any{"mtp_use_dedicated_embeddings": true},
			"mtp_use_dedicated_embeddings", "true"},
		{"layer types of another length", map[string]any{"layer_types": []string{"full_attention"}}, "layer_types",
			"1 entries"},
		{"an unknown layer type", map[string]any{"num_hidden_layers": 1, "layer_types": []string{"sliding_attention"}},
			"layer_types", `"sliding_attention"`},
		{"full attention only", map[string]any{"num_hidden_layers": 1, "layer_types": []string{"full_attention"}},
			"layer_types", "1 full-attention layers of 1"},
		{"yarn", rope(map[string]any{"rope_type": "yarn", "factor": 4.0}), "rope_parameters.rope_type", `"yarn"`},
		{"yarn where older exports keep it", map[string]any{
			"rope_scaling": map[string]any{"type": "yarn", "factor": 4.0}}, "rope_parameters.rope_type", `"yarn"`},
		{"no theta", rope(map[string]any{"rope_theta": nil}), "rope_parameters.rope_theta", "nothing"},
		{"odd rotary dims", rope(map[string]any{"partial_rotary_factor": 0.05}),
			"rope_parameters.partial_rotary_factor", "0.05"},
		{"zero epsilon", map[string]any{"rms_norm_eps": 0}, "rms_norm_eps", "0"},
		{"an end id that is text", map[string]any{"eos_token_id": "end"}, "eos_token_id", "end"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := parse(t, with(base, row.changes), "")
			var m *weights.MisfitError
			if !errors.As(err, &m) {
				t.Fatalf("error %v, wanted a misfit", err)
			}
			if m.File != "config.json" || m.Tensor != row.field || !strings.Contains(m.Found, row.found) {
				t.Errorf("%q; wanted field %q, found %q", m, row.field, row.found)
			}
		})
	}
	if _, err := ParseConfig([]byte("["), nil); err == nil {
		t.Error("half a file was taken")
	}
}

func TestConfigOfThe27BIsRead(t *testing.T) {
	text := `{"architectures":["Qwen3_5ForConditionalGeneration"],"model_type":"qwen3_5","tie_word_embeddings":false,"image_token_id":248056,
	"text_config":{"model_type":"qwen3_5_text","vocab_size":248320,"hidden_size":5120,"intermediate_size":17408,"num_hidden_layers":64,"num_attention_heads":24,
	"num_key_value_heads":4,"head_dim":256,"hidden_act":"silu","attention_bias":false,"attn_output_gate":true,"output_gate_type":"swish",
	"full_attention_interval":4,"linear_num_key_heads":16,"linear_num_value_heads":48,"linear_key_head_dim":128,"linear_value_head_dim":128,
	"linear_conv_kernel_dim":4,"rms_norm_eps":1e-06,"max_position_embeddings":262144,"eos_token_id":248044,"mtp_num_hidden_layers":1,
	"rope_parameters":{"rope_type":"default","rope_theta":10000000,"partial_rotary_factor":0.25,"mrope_section":[11,11,10],"mrope_interleaved":true}},
	"vision_config":{"depth":27}}`
	c, err := ParseConfig([]byte(text), []byte(`{"eos_token_id":[248046,248044]}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.ConvChannels() != 10240 || c.AttentionLayers() != 16 || c.Layers[3].Mixer != arch.FullAttention ||
		c.Layers[4].Mixer == arch.FullAttention || c.Layers[63].Mixer != arch.FullAttention || c.RotaryDims != 64 ||
		c.Tied || c.MaxPositions != 262144 || c.RopeTheta != 1e7 || !reflect.DeepEqual(c.EOS, []int32{248044, 248046}) {
		t.Errorf("read as %+v", c)
	}
}

func TestEndIdBeyondTheVocabularyIsTaken(t *testing.T) {
	_, err := parse(t, pocketConfig(t), `{"eos_token_id":[4088,4000000]}`)
	var m *weights.MisfitError
	if !errors.As(err, &m) || m.File != "generation_config.json" || m.Tensor != "eos_token_id" || m.Found != "4000000" {
		t.Errorf("error %v", err)
	}
}

func TestEndIdsComeFromBothFilesOnce(t *testing.T) {
	base := pocketConfig(t)
	for _, row := range []struct {
		name       string
		eos        any
		generation string
		want       []int32
	}{
		{"number and list", 4088, `{"eos_token_id":[4088,4086]}`, []int32{4088, 4086}},
		{"list and nothing", []int{1, 2, 1}, "", []int32{1, 2}},
		{"null and number", nil, `{"eos_token_id":3}`, []int32{3}},
		{"neither", nil, `{}`, nil},
		{"a generation file that is broken", 5, `{"eos`, []int32{5}},
	} {
		changes := maps.Clone(base)
		changes["eos_token_id"] = row.eos
		c, err := parse(t, changes, row.generation)
		if err != nil || !reflect.DeepEqual(c.EOS, row.want) {
			t.Errorf("%s: %v, %v; wanted %v", row.name, c, err, row.want)
		}
	}
}

// FuzzConfig: whatever the text, no panic, and a config that is taken has dimensions that the network can be built
// from.
func FuzzConfig(f *testing.F) {
	text, err := os.ReadFile(pocketQ4 + "/config.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte(`{"eos_token_id":[1,2]}`))
	f.Add([]byte(`{"model_type":"qwen3_5","text_config":{}}`), []byte(nil))
	f.Add([]byte(`{"model_type":"qwen3_5","text_config":null,"rope_parameters":{"rope_theta":1e999}}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		c, err := ParseConfig(config, generation)
		if err != nil {
			var m *weights.MisfitError
			if !errors.As(err, &m) {
				t.Fatalf("%T, wanted a misfit: %v", err, err)
			}
			return
		}
		if c.Hidden <= 0 || c.Heads%c.KVHeads != 0 || c.ValueHeads%c.KeyHeads != 0 || c.RotaryDims <= 0 ||
			c.RotaryDims > c.HeadDim || len(c.Layers) == 0 {
			t.Fatalf("taken: %+v", c)
		}
		c.RotaryDims = min(c.RotaryDims, 512)
		for _, v := range inverseFrequencies(c) {
			if !(v > 0 && v <= 1) {
				t.Fatalf("a frequency of %g", v)
			}
		}
	})
}

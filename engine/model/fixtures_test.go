package model

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"slipway/engine/weights"
	"slipway/engine/weights/fixture"
)

func itoa(i int) string { return strconv.Itoa(i) }

type floatTensor struct {
	shape  []int
	dtype  string
	values []float32
}

// decodeSafetensors reads a file of float tensors without the code under test.
func decodeSafetensors(t testing.TB, file []byte) map[string]floatTensor {
	t.Helper()
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	out := map[string]floatTensor{}
	for name, e := range header {
		if name == "__metadata__" {
			continue
		}
		data := file[8+int(n)+e.Offsets[0] : 8+int(n)+e.Offsets[1]]
		out[name] = floatTensor{shape: e.Shape, dtype: e.DType, values: weights.Floats(nil, weights.DType(e.DType),
			data)}
	}
	return out
}

// geometry is the shape of a random model.
type geometry struct {
	vocab, hidden, intermediate, layers int
	heads, kvHeads, headDim             int
	keyHeads, valueHeads                int
	keyDim, valueDim                    int
	interval                            int // every so many layers attend fully; 0: every fourth
}

// attends reports whether a layer is one of full attention.
func (g geometry) attends(layer int) bool { return (layer+1)%cmp.Or(g.interval, 4) == 0 }

func (g geometry) config() map[string]any {
	return map[string]any{
		"architectures": []string{"Qwen3_5ForCausalLM"}, "model_type": "qwen3_5_text", "vocab_size": g.vocab,
		"hidden_size":       g.hidden,
		"intermediate_size": g.intermediate, "num_hidden_layers": g.layers, "num_attention_heads": g.heads,
		"num_key_value_heads": g.kvHeads,
		"head_dim":            g.headDim, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
		"tie_word_embeddings":     true,
		"full_attention_interval": cmp.Or(g.interval, 4),
		"linear_num_key_heads":    g.keyHeads, "linear_num_value_heads": g.valueHeads,
		"linear_key_head_dim": g.keyDim, "linear_value_head_dim": g.valueDim, "linear_conv_kernel_dim": 4,
		"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
		"eos_token_id":    1,
	}
}

// write makes a raw F32 checkpoint in which every parameter is random: the published defaults of norms, dt_bias and
// A_log would hide mistakes.
func (g geometry) write(t testing.TB, seed uint64) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	f := fixture.File{}
	random := func(name string, centre, spread float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(centre + spread*r.NormFloat64())
		}
		f["model."+name] = fixture.F32(values, shape...)
	}
	linear := func(name string, out, in int) { random(name+".weight", 0, 0.6/float64(isqrt(in)), out, in) }
	random("embed_tokens.weight", 0, 0.7, g.vocab, g.hidden)
	random("norm.weight", 0, 0.3, g.hidden)
	channels := 2*g.keyHeads*g.keyDim + g.valueHeads*g.valueDim
	for l := range g.layers {
		at := "layers." + itoa(l) + "."
		random(at+"input_layernorm.weight", 0, 0.3, g.hidden)
		random(at+"post_attention_layernorm.weight", 0, 0.3, g.hidden)
		linear(at+"mlp.gate_proj", g.intermediate, g.hidden)
		linear(at+"mlp.up_proj", g.intermediate, g.hidden)
		linear(at+"mlp.down_proj", g.hidden, g.intermediate)
		if g.attends(l) {
			linear(at+"self_attn.q_proj", 2*g.heads*g.headDim, g.hidden)
			linear(at+"self_attn.k_proj", g.kvHeads*g.headDim, g.hidden)
			linear(at+"self_attn.v_proj", g.kvHeads*g.headDim, g.hidden)
			linear(at+"self_attn.o_proj", g.hidden, g.heads*g.headDim)
			random(at+"self_attn.q_norm.weight", 0.5, 0.3, g.headDim)
			random(at+"self_attn.k_norm.weight", 0.5, 0.3, g.headDim)
			continue
		}
		linear(at+"linear_attn.in_proj_qkv", channels, g.hidden)
		linear(at+"linear_attn.in_proj_z", g.valueHeads*g.valueDim, g.hidden)
		linear(at+"linear_attn.in_proj_b", g.valueHeads, g.hidden)
		linear(at+"linear_attn.in_proj_a", g.valueHeads, g.hidden)
		linear(at+"linear_attn.out_proj", g.hidden, g.valueHeads*g.valueDim)
		random(at+"linear_attn.conv1d.weight", 0.1, 0.5, channels, 1, 4)
		random(at+"linear_attn.A_log", -1, 1, g.valueHeads)
		random(at+"linear_attn.dt_bias", 0, 1, g.valueHeads)
		random(at+"linear_attn.norm.weight", 1, 0.3, g.valueDim)
	}
	dir := t.TempDir()
	if err := fixture.Write(dir, g.config(), map[string]fixture.File{"model.safetensors": f}, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

func isqrt(n int) int {
	r := 1
	for r*r < n {
		r++
	}
	return r
}

func randomTokens(n, vocab int, seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(vocab))
	}
	return out
}

package model

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/engine/weights/fixture"

	"slipway/engine/pass"
)

// pocketTensors reads the raw BF16 form as fixture tensors, and its config.
func pocketTensors(t *testing.T) (fixture.File, map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pocketBF16, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	f := fixture.File{}
	for name, v := range decodeSafetensors(t, text) {
		f[name] = fixture.BF16(v.values, v.shape...)
	}
	var config map[string]any
	raw, err := os.ReadFile(filepath.Join(pocketBF16, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	return f, config
}

// shifted tells the norms that MLX conversions store as 1+w.
func shifted(name string) bool {
	return strings.HasSuffix(name, "norm.weight") && !strings.Contains(name, "linear_attn.norm") ||
		strings.HasSuffix(name, "pre_fc_norm_embedding.weight") || strings.HasSuffix(name, "pre_fc_norm_hidden.weight")
}

func floats(t *testing.T, f fixture.Tensor) []float32 {
	t.Helper()
	return decodeSafetensors(t, fixture.File{"x": f}.Encode())["x"].values
}

// toMLX converts the trunk and the head as mlx-lm does, but keeps the norms in F32 so that 1+w is not rounded.
func toMLX(t *testing.T, raw fixture.File) fixture.File {
	out := fixture.File{}
	for name, v := range raw {
		switch {
		case strings.HasSuffix(name, "conv1d.weight"):
			v.Shape = []int{v.Shape[0], v.Shape[2], 1}
		case shifted(name):
			w := floats(t, v)
			for i := range w {
				w[i]++
			}
			v = fixture.F32(w, len(w))
		}
		out[name] = v
	}
	return out
}

// fuse replaces the split input projections by in_proj_qkvz and in_proj_ba, laid out by key head.
func fuse(raw fixture.File, c *Config) fixture.File {
	out := maps.Clone(raw)
	r := c.ValueHeads / c.KeyHeads
	for name := range raw {
		module, ok := strings.CutSuffix(name, "in_proj_qkv.weight")
		if !ok {
			continue
		}
		rows := func(part string, from, n int) []byte {
			w := raw[module+part+".weight"]
			width := len(w.Data) / w.Shape[0]
			return w.Data[from*width : (from+n)*width]
		}
		var qkvz, ba []byte
		keys := c.KeyHeads * c.KeyDim
		for h := range c.KeyHeads {
			qkvz = append(qkvz, rows("in_proj_qkv", h*c.KeyDim, c.KeyDim)...)
			qkvz = append(qkvz, rows("in_proj_qkv", keys+h*c.KeyDim, c.KeyDim)...)
			qkvz = append(qkvz, rows("in_proj_qkv", 2*keys+h*r*c.ValueDim, r*c.ValueDim)...)
			qkvz = append(qkvz, rows("in_proj_z", h*r*c.ValueDim, r*c.ValueDim)...)
			ba = append(ba, rows("in_proj_b", h*r, r)...)
			ba = append(ba, rows("in_proj_a", h*r, r)...)
		}
		out[module+"in_proj_qkvz.weight"] = fixture.Tensor{
			DType: "BF16", Shape: []int{c.ConvChannels() + c.ValueHeads*c.ValueDim, c.Hidden}, Data: qkvz}
		out[module+"in_proj_ba.weight"] = fixture.Tensor{DType: "BF16", Shape: []int{2 * c.ValueHeads, c.Hidden},
			Data: ba}
		for _, part := range []string{"in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"} {
			delete(out, module+part+".weight")
		}
	}
	return out
}

// rename puts another prefix in front of the trunk (not of mtp.*).
func rename(f fixture.File, prefix string) fixture.File {
	out := fixture.File{}
	for name, v := range f {
		if rest, ok := strings.CutPrefix(name, "model."); ok {
			name = prefix + rest
		}
		out[name] = v
	}
	return out
}

func with(config map[string]any, changes map[string]any) map[string]any {
	out := maps.Clone(config)
	maps.Copy(out, changes)
	return out
}

// shards cuts a file in two by halves of its names, so that layers straddle the border.
func shards(f fixture.File) map[string]fixture.File {
	out := map[string]fixture.File{"model-00001-of-00002.safetensors": {}, "model-00002-of-00002.safetensors": {}}
	for i, name := range names(f) {
		shard := "model-00001-of-00002.safetensors"
		if i%2 == 1 {
			shard = "model-00002-of-00002.safetensors"
		}
		out[shard][name] = f[name]
	}
	return out
}

func TestEveryFormOfTheSameModelGivesTheSameBits(t *testing.T) {
	raw, config := pocketTensors(t)
	single := func(f fixture.File) map[string]fixture.File { return map[string]fixture.File{"model.safetensors": f} }
	c := load(t, pocketBF16, Options{WindowTokens: 512, MaxSequences: 1}).config
	mlx := toMLX(t, raw)

	untied := maps.Clone(raw)
	untied["lm_head.weight"] = raw["model.embed_tokens.weight"]
	untiedMLX := rename(mlx, "language_model.model.")
	untiedMLX["language_model.lm_head.weight"] = raw["model.embed_tokens.weight"]
	decoy := maps.Clone(raw) // tied in the config: an lm_head in the file does not count
	decoy["lm_head.weight"] = raw["model.layers.0.mlp.up_proj.weight"]
	vision := maps.Clone(raw)
	vision["visual.patch_embed.proj.weight"] = fixture.Tensor{DType: "BF16", Shape: []int{2, 3, 2, 2, 2},
		Data: make([]byte, 96)}
	vision["vision_tower.merger.norm.weight"] = fixture.BF16(make([]float32, 8), 8)
	visionShard := shards(raw) // listed in the index, but its file was never fetched
	visionIndex := map[string]fixture.File{
		"model-vision.safetensors": {"visual.norm.weight": fixture.BF16(make([]float32, 8), 8)}}
	maps.Copy(visionIndex, visionShard)
	trunk, head := fixture.File{}, fixture.File{}
	for name, v := range mlx {
		if strings.HasPrefix(name, "mtp.") {
			head[name] = v
		} else {
			trunk[name] = v
		}
	}
	rawHead, bareHead := fixture.File{}, fixture.File{}
	for name := range head {
		rawHead["language_model."+name] = raw[name]
		bareHead[strings.TrimPrefix(name, "mtp.")] = head[name]
	}
	sharded := func(f fixture.File) map[string]fixture.File { return shards(f) }
	nested := map[string]any{
		"model_type": "qwen3_5", "text_config": with(config, map[string]any{"tie_word_embeddings": nil}),
		"tie_word_embeddings": true,
		"vision_config":       map[string]any{"depth": 1}}

	prompt := longPrompt(t, 80)
	run := func(t *testing.T, dir string) (logits [][]float32, mtp []float32) {
		n := load(t, dir, Options{WindowTokens: 512, MaxSequences: 1, Draft: DraftMTP})
		s := newSequence(t, n)
		hidden := make([]float32, len(prompt)*n.config.Hidden)
		logits = forward(t, s, prompt, 512, pass.LogitsAll, hidden)
		rows, err := n.MTP(t.Context(), []pass.HeadSegment{
			{Seq: s, Tokens: prompt[1:], Hidden: hidden, Logits: pass.LogitsLast}})
		if err != nil {
			t.Fatal(err)
		}
		return logits, append([]float32(nil), rows[0][0]...)
	}
	want, wantMTP := run(t, pocketBF16)

	for _, form := range []struct {
		name   string
		files  map[string]fixture.File
		config map[string]any
		index  bool
	}{
		{"Hugging Face, written again", single(raw), config, false},
		{"MLX, norms as 1+w", single(mlx), config, false},
		{"Hugging Face, fused projections", single(fuse(raw, c)), config, false},
		{"MLX, fused projections", single(fuse(mlx, c)), config, false},
		{"Hugging Face, untied", single(untied), with(config, map[string]any{"tie_word_embeddings": false}), false},
		{"MLX, untied, under language_model", single(untiedMLX),
			with(config, map[string]any{"tie_word_embeddings": false}), false},
		{"tied with an lm_head in the file", single(decoy), config, false},
		{"prefix language_model.", single(rename(raw, "language_model.")), config, false},
		{"prefix model.language_model.model.", single(rename(raw, "model.language_model.model.")), config, false},
		{"prefix model.language_model., text_config nested", single(rename(raw, "model.language_model.")), nested,
			false},
		{"vision tensors beside it", single(vision), config, false},
		{"two shards with an index", sharded(raw), config, true},
		{"a shard of vision alone is missing", visionIndex,
			with(config, map[string]any{
				"quantization": map[string]any{"bits": 4, "group_size": 64, "visual.blocks.0": map[string]any{
					"bits": 7}}}), true},
		{"two shards without an index", sharded(mlx), config, false},
		{"MTP in a sidecar that config.json names, raw norms as the field says", map[string]fixture.File{
			"model.safetensors": trunk, "extra/head.safetensors": rawHead},
			with(config, map[string]any{"mlx_lm_extra_tensors": map[string]any{"mtp_file": "extra/head.safetensors"},
				"mtplx_mtp_norm_encoding": "delta",
				"mtplx_mtp_contract": map[string]any{"base_hidden_variant": "post_norm",
					"hidden_variant": "post_norm", "concat_order": "embedding_hidden"}}), false},
		{"MTP in mtp.safetensors, norms as 1+w by their means", map[string]fixture.File{
			"model.safetensors": trunk, "mtp.safetensors": head}, config, false},
		{"MTP without prefix in mtp/weights.safetensors", map[string]fixture.File{
			"model.safetensors": trunk, "mtp/weights.safetensors": bareHead}, config, false},
		{"MTP in model-mtp.safetensors, no index", map[string]fixture.File{
			"model.safetensors": trunk, "model-mtp.safetensors": head}, config, false},
		{"MTP in a file of its own in the index", map[string]fixture.File{
			"model.safetensors": trunk, "mtp-00001.safetensors": head}, config, true},
	} {
		t.Run(form.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := fixture.Write(dir, form.config, form.files, form.index); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(dir, "model-vision.safetensors")) // where there is one
			logits, mtp := run(t, dir)
			sameBits(t, "logits", logits, want)
			sameBits(t, "MTP logits", [][]float32{mtp}, [][]float32{wantMTP})
		})
	}
}

package dflash

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

func pocketConfig(t testing.TB) (fields map[string]any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/bf16/config.json")
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// parse reads Pocket's draft's configuration with one field changed; a name with a dot is one of dflash_config.
func parse(t testing.TB, field string, value any) (Config, error) {
	t.Helper()
	fields := pocketConfig(t)
	in := fields
	if name, inner := strings.CutPrefix(field, "dflash_config."); inner {
		in, field = fields["dflash_config"].(map[string]any), name
	}
	if value == nil {
		delete(in, field)
	} else if field != "" {
		in[field] = value
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return ParseConfig(text)
}

func TestConfigurationsOfOtherDraftsAreRefused(t *testing.T) {
	if _, err := parse(t, "", 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		value any
		says  string
	}{
		{"architectures", []string{"DFlashDraftModel"}, "is DFlash2DraftModel"},
		{"is_causal", true, "is_causal"},
		{"hidden_act", "gelu", "hidden_act"},
		{"attention_bias", true, "attention_bias"},
		{"layer_types", []string{"sliding_attention", "full_attention"}, "layer_types"},
		{"layer_types", []string{"sliding_attention"}, "layer_types"},
		{"rope_parameters", map[string]any{"rope_type": "yarn", "rope_theta": 1e6}, "rope_type"},
		{"sliding_window", nil, "sliding_window"},
		{"hidden_size", 0, "hidden_size"},
		{"num_key_value_heads", 3, "do not divide"},
		{"rms_norm_eps", -1, "rms_norm_eps"},
		{"final_logit_softcapping", -1, "final_logit_softcapping"},
		{"dflash_config.conv_kernel_size", 3, "conv_kernel_size"},
		{"dflash_config.conv_group_size", 7, "do not divide"},
		{"dflash_config.mask_token_id", nil, "mask_token_id"},
		{"dflash_config.block_size", 9, "block_size"},
		{"dflash_config.block_size", 1, "block_size"},
		{"dflash_config.selector_top_k", 64, "selector_top_k"},
		{"dflash_config.target_layer_ids", []int{}, "target_layer_ids"},
	} {
		_, err := parse(t, c.field, c.value)
		var misfit *MisfitError
		if !errors.As(err, &misfit) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %v: %v, wanted a sentence with %q", c.field, c.value, err, c.says)
		}
	}
}

func TestDraftsForAnotherModelAreRefused(t *testing.T) {
	c, err := parse(t, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	good := Target{Hidden: 320, Layers: 8, Vocab: 4096, Tokens: 4096}
	if err := c.Fits(good); err != nil {
		t.Fatal(err)
	}
	twice := c
	twice.Taps = []int{1, 3, 3}
	beyond := c
	beyond.Taps = []int{1, 3, 8}
	for _, f := range []struct {
		c    Config
		t    Target
		says string
	}{
		{c, Target{Hidden: 320, Layers: 64, Vocab: 4096, Tokens: 4096}, "another model, of 8 layers"},
		{c, Target{Hidden: 5120, Layers: 8, Vocab: 4096, Tokens: 4096}, "another model, of 8 layers with 320"},
		{c, Target{Hidden: 320, Layers: 8, Vocab: 248320, Tokens: 248077}, "another tokenizer"},
		{c, Target{Hidden: 320, Layers: 8, Vocab: 4096, Tokens: 4095}, "mask is token 4095"},
		{twice, good, "layers 0 to 7, each once"},
		{beyond, good, "layers 0 to 7"},
	} {
		if err := f.c.Fits(f.t); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%+v: %v, wanted a sentence with %q", f.t, err, f.says)
		}
	}
}

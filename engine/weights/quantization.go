package weights

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// quantization is what config.json says about MLX quantisation. The tensors' shapes decide; this is checked against
// them.
type quantization struct {
	stated  bool
	bits    int
	group   int
	modules map[string]override // by module path as in the file
}

type override struct {
	off         bool
	bits, group int
}

// parseQuantization reads "quantization", or "quantization_config" where only that is present. Modes other than affine
// and foreign methods (fp8, awq, ...) are refused by name.
func parseQuantization(config []byte) (quantization, error) {
	q := quantization{modules: map[string]override{}}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(config, &top); err != nil {
		return q, misfit("config.json", "", "text that is not a JSON object: "+err.Error(), "a model configuration")
	}
	field := "quantization"
	raw := top[field]
	if absent(raw) {
		field = "quantization_config"
		if raw = top[field]; absent(raw) {
			return q, nil
		}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return q, misfit("config.json", field, "not an object", "MLX affine quantisation")
	}
	if method, ok := fields["quant_method"]; ok && string(method) != `"mlx"` {
		return q, misfit("config.json", field, "quant_method "+string(method), "MLX affine quantisation or "+
			"float weights")
	}
	q.stated = true
	var err error
	if q.bits, q.group, err = affineNumbers(field, raw, 4, 64); err != nil {
		return q, err
	}
	for name, value := range fields {
		switch {
		case name == "group_size" || name == "bits" || name == "mode" || name == "quant_method" || skipped(name+"."):
		case string(value) == "false":
			q.modules[name] = override{off: true}
		case len(value) > 0 && value[0] == '{':
			bits, group, err := affineNumbers(field+"."+name, value, q.bits, q.group)
			if err != nil {
				return q, err
			}
			q.modules[name] = override{bits: bits, group: group}
		}
	}
	return q, nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

func affineNumbers(field string, raw json.RawMessage, bits, group int) (int, int, error) {
	var v struct {
		Bits  *int    `json:"bits"`
		Group *int    `json:"group_size"`
		Mode  *string `json:"mode"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return 0, 0, misfit("config.json", field, err.Error(), "bits, group_size and mode")
	}
	if v.Mode != nil && *v.Mode != "affine" {
		return 0, 0, misfit("config.json", field, fmt.Sprintf("mode %q", *v.Mode), `mode "affine"`)
	}
	if v.Bits != nil {
		bits = *v.Bits
	}
	if v.Group != nil {
		group = *v.Group
	}
	if !validBits(bits) || !validGroup(group) {
		return 0, 0, misfit("config.json", field, fmt.Sprintf("bits %d, group_size %d", bits, group), affineWanted)
	}
	return bits, group, nil
}

const affineWanted = "bits 2, 3, 4, 5, 6 or 8 and group_size 32, 64 or 128"

func validBits(n int) bool {
	return n == 2 || n == 3 || n == 4 || n == 5 || n == 6 || n == 8
}

func validGroup(n int) bool { return n == 32 || n == 64 || n == 128 }

// Package families lists the model families. A family is a folder beside this file and a line in the list: its network
// (what config.json means, see package arch) and its text (template, tokens and replies, see package family).
package families

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"slipway/engine/families/qwen35"
	"slipway/engine/model/arch"
	"slipway/engine/text/family"
	"slipway/engine/weights"
)

// Family is everything that differs between families of models.
type Family struct {
	ModelTypes []string // model_type of config.json
	Network    arch.Family
	Text       *family.Family
}

var all = []Family{
	{qwen35.ModelTypes, qwen35.Network, qwen35.Text},
}

// Of finds the family of a config.json by its model_type. Errors are *weights.MisfitError.
func Of(config []byte) (Family, error) {
	var top struct {
		ModelType string `json:"model_type"`
	}
	if err := json.Unmarshal(config, &top); err != nil {
		return Family{}, &weights.MisfitError{File: "config.json", Found: "text that does not parse: " + err.Error(),
			Wanted: "a model configuration"}
	}
	var known []string
	for _, f := range all {
		if slices.Contains(f.ModelTypes, top.ModelType) {
			return f, nil
		}
		known = append(known, f.ModelTypes...)
	}
	return Family{}, &weights.MisfitError{File: "config.json", Tensor: "model_type",
		Found:  fmt.Sprintf("%q", top.ModelType),
		Wanted: "one of " + strings.Join(known, ", ")}
}

package text

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"slipway/engine/text/family"
	"slipway/engine/text/qwen35"
)

// families are the model families whose text side is known. A new one is a package beside qwen35 and a line here.
var families = []*family.Family{
	qwen35.Family,
}

// familyOf finds the family of a model's folder by the model_type of its config.json. Errors are *FileError.
func familyOf(dir string) (*family.Family, error) {
	path := filepath.Join(dir, "config.json")
	raw, err := readFile(path)
	if err != nil {
		return nil, &FileError{File: path, Err: err, Want: "a readable config.json"}
	}
	var config struct {
		ModelType string `json:"model_type"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, &FileError{File: path, Err: err, Want: "JSON"}
	}
	var known []string
	for _, f := range families {
		if slices.Contains(f.ModelTypes, config.ModelType) {
			return f, nil
		}
		known = append(known, f.ModelTypes...)
	}
	return nil, &FileError{File: path, Field: "model_type", Found: quoted(config.ModelType),
		Want: "one of " + strings.Join(known, ", ")}
}

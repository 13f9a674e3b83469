package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/engine/text/family"
)

// maxTemplateBytes bounds a template; the largest of the family has 9 KB.
const maxTemplateBytes = 1 << 20

// LoadTemplate reads a model folder's chat template: chat_template.jinja, or else chat_template of
// tokenizer_config.json (a string, or a list of {"name","template"} with one named "default"). addedTokens as in
// [NewTemplate]. Errors are
// *FileError.
func LoadTemplate(f *family.Family, dir string, addedTokens []string) (*Template, error) {
	path := filepath.Join(dir, "chat_template.jinja")
	raw, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return loadConfigTemplate(f, dir, addedTokens)
	}
	if err != nil {
		return nil, &FileError{File: path, Err: err}
	}
	return compileFile(f, path, "", string(raw), addedTokens)
}

func loadConfigTemplate(f *family.Family, dir string, addedTokens []string) (*Template, error) {
	path := filepath.Join(dir, "tokenizer_config.json")
	want := "a chat template here or in chat_template.jinja beside it"
	raw, err := readFile(path)
	if err != nil {
		return nil, &FileError{File: path, Err: err, Want: want}
	}
	var config struct {
		ChatTemplate json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, &FileError{File: path, Err: err, Want: "JSON"}
	}
	var source string
	var named []struct{ Name, Template string }
	switch {
	case len(config.ChatTemplate) == 0 || string(config.ChatTemplate) == "null":
		return nil, &FileError{File: path, Field: "chat_template", Found: "nothing", Want: want}
	case json.Unmarshal(config.ChatTemplate, &source) == nil:
		return compileFile(f, path, "chat_template", source, addedTokens)
	case json.Unmarshal(config.ChatTemplate, &named) == nil:
		for i, entry := range named {
			if entry.Name == "default" {
				return compileFile(f, path, fmt.Sprintf("chat_template[%d].template", i), entry.Template, addedTokens)
			}
		}
		return nil, &FileError{File: path, Field: "chat_template",
			Found: fmt.Sprintf("%d templates, none of them named \"default\"", len(named)), Want: "a default one"}
	}
	return nil, &FileError{File: path, Field: "chat_template", Found: "another type", Want: "a string, or a list of " +
		"named templates"}
}

func compileFile(f *family.Family, path, field, source string, addedTokens []string) (*Template, error) {
	if strings.TrimSpace(source) == "" {
		return nil, &FileError{File: path, Field: field, Found: "an empty template", Want: "one that writes the " +
			"conversation"}
	}
	if len(source) > maxTemplateBytes {
		return nil, &FileError{File: path, Field: field, Found: fmt.Sprintf("%d bytes", len(source)),
			Want: fmt.Sprintf("at most %d", maxTemplateBytes)}
	}
	t, err := NewTemplate(f, source, addedTokens)
	if err != nil {
		return nil, &FileError{File: path, Field: field, Err: err}
	}
	return t, nil
}

// readFile reads a regular file; opening a pipe would wait for a writer, and a device has no end.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return os.ReadFile(path)
}

var errNotRegular = errors.New("it is a folder, a pipe or a device")

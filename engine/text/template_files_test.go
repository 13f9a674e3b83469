package text

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/engine/families/qwen35"
)

// A pipe without a writer would be waited for, and /dev/zero be read until memory ends.
func TestPipesAndDevicesAreRefused(t *testing.T) {
	for _, name := range []string{"tokenizer.json", "chat_template.jinja", "tokenizer_config.json"} {
		for kind, place := range map[string]func(string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := t.TempDir()
			if err := place(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			_, err := LoadTemplate(qwen35.Text, dir, nil)
			if name == "tokenizer.json" {
				_, err = LoadTokenizer(qwen35.Text, filepath.Join(dir, name))
			}
			var wrong *FileError
			if !errors.As(err, &wrong) || !errors.Is(err, errNotRegular) || filepath.Base(wrong.File) != name {
				t.Errorf("%s is a %s: %v", name, kind, err)
			}
		}
	}
}

func TestTemplateIsFoundInItsFiles(t *testing.T) {
	tests := []struct {
		name, jinja, config string
		want                string // rendered; empty for an error
		field               string
	}{
		{"file wins", "file\n", `{"chat_template":"config"}`, "file", ""},
		{"config alone", "", `{"chat_template":"config"}`, "config", ""},
		{"list", "", `{"chat_template":[{"name":"tool_use","template":"t"},{"name":"default","template":"d"}]}`, "d",
			""},
		{"list without a default", "", `{"chat_template":[{"name":"tool_use","template":"t"}]}`, "", "chat_template"},
		{"config without one", "", `{}`, "", "chat_template"},
		{"null", "", `{"chat_template":null}`, "", "chat_template"},
		{"a number", "", `{"chat_template":1}`, "", "chat_template"},
		{"not JSON", "", `{`, "", ""},
		{"neither", "", "", "", ""},
		{"does not compile", "{% if %}", "", "", ""},
		{"blank", " \n", "", "", ""},
		{"empty in the config", "", `{"chat_template":""}`, "", "chat_template"},
		{"too large", strings.Repeat("x", 1<<20+1), "", "", ""},
	}
	for _, test := range tests {
		dir := t.TempDir()
		for name, content := range map[string]string{"chat_template.jinja": test.jinja,
			"tokenizer_config.json": test.config} {
			if content == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		template, err := LoadTemplate(qwen35.Text, dir, nil)
		var wrong *FileError
		if test.want == "" {
			if !errors.As(err, &wrong) || wrong.Field != test.field {
				t.Errorf("%s: %#v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if p, err := template.Render(Conversation{}); err != nil || p.Text != test.want {
			t.Errorf("%s: %v, %q", test.name, err, p.Text)
		}
	}
}

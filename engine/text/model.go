package text

import (
	"path/filepath"

	"slipway/engine/text/family"
)

// Model is the text side of a model's folder. Its parts are immutable and safe for concurrent use.
type Model struct {
	Family    *family.Family
	Tokenizer *Tokenizer
	Template  *Template
}

// Load reads tokenizer.json and the chat template (see [LoadTemplate]) of the folder of a model of family f. Errors are
// *FileError.
func Load(f *family.Family, dir string) (*Model, error) {
	tokenizer, err := LoadTokenizer(f, filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	template, err := LoadTemplate(f, dir, tokenizer.addedTexts())
	if err != nil {
		return nil, err
	}
	return &Model{Family: f, Tokenizer: tokenizer, Template: template}, nil
}

// addedTexts gives the texts of the added tokens.
func (t *Tokenizer) addedTexts() []string {
	var texts []string
	for id, flags := range t.flags {
		if flags&flagAdded != 0 && len(t.pieces[id]) > 0 {
			texts = append(texts, string(t.pieces[id]))
		}
	}
	return texts
}

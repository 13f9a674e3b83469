package text

import "path/filepath"

// Model is the text side of a model's folder. Both parts are immutable and safe for concurrent use.
type Model struct {
	Tokenizer *Tokenizer
	Template  *Template
}

// Load reads tokenizer.json and the chat template (see [LoadTemplate]) of a model's folder. Errors are *FileError.
func Load(dir string) (*Model, error) {
	tokenizer, err := LoadTokenizer(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	template, err := LoadTemplate(dir, tokenizer.addedTexts())
	if err != nil {
		return nil, err
	}
	return &Model{Tokenizer: tokenizer, Template: template}, nil
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

package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"slipway/engine/text/family"
)

// largestID bounds the ids that a file may define, so that a broken file cannot ask for gigabytes.
const largestID = 1 << 22

// tokenizerFile is the part of tokenizer.json that is read.
type tokenizerFile struct {
	AddedTokens []struct {
		ID      int64
		Content string
		Single  bool `json:"single_word"`
		Left    bool `json:"lstrip"`
		Right   bool `json:"rstrip"`
		Special bool
	} `json:"added_tokens"`
	Normalizer    *stage
	PreTokenizer  *stage `json:"pre_tokenizer"`
	PostProcessor *stage `json:"post_processor"`
	Decoder       *stage
	Model         struct {
		Type                    string
		Vocab                   map[string]int64
		Merges                  []json.RawMessage
		IgnoreMerges            bool    `json:"ignore_merges"`
		ByteFallback            bool    `json:"byte_fallback"`
		ContinuingSubwordPrefix *string `json:"continuing_subword_prefix"`
		EndOfWordSuffix         *string `json:"end_of_word_suffix"`
	}
}

// stage is a normalizer, pre-tokenizer, post-processor or decoder.
type stage struct {
	Type           string
	Normalizers    []stage
	Pretokenizers  []stage
	Pattern        struct{ Regex, String string }
	Behavior       string
	Invert         bool
	AddPrefixSpace *bool `json:"add_prefix_space"`
	UseRegex       *bool `json:"use_regex"`
}

// LoadTokenizer reads a tokenizer.json of a family: byte-level BPE, its split pattern, NFC or no normaliser.
// Whatever else a file asks for is a *[FileError], never a silent difference.
func LoadTokenizer(f *family.Family, path string) (*Tokenizer, error) {
	raw, err := readFile(path)
	if err != nil {
		return nil, &FileError{File: path, Err: err, Want: "a readable tokenizer.json"}
	}
	return parseTokenizer(f, path, raw)
}

func parseTokenizer(f *family.Family, path string, raw []byte) (*Tokenizer, error) {
	var file tokenizerFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, &FileError{File: path, Err: err, Want: "JSON of the tokenizers library"}
	}
	l := tokenizerLoader{family: f, file: &file, t: &Tokenizer{file: path, wordEnd: f.WordEnd,
		words: map[string]int32{}, merges: map[uint64]merged{}, whole: file.Model.IgnoreMerges}}
	for _, step := range []func() error{l.stages, l.vocabulary, l.bytes, l.merges, l.addedTokens} {
		if err := step(); err != nil {
			var at *FileError
			if errors.As(err, &at) {
				at.File = path
			}
			return nil, err
		}
	}
	l.t.longest = longestPieces(l.t.pieces)
	return l.t, nil
}

// tokenizerLoader fills t from file, step by step.
type tokenizerLoader struct {
	family *family.Family
	file   *tokenizerFile
	t      *Tokenizer
}

func misfit(field, found, want string, args ...any) error {
	return &FileError{Field: field, Found: found, Want: fmt.Sprintf(want, args...)}
}

// stages refuses every processing step that this package does not do.
func (l *tokenizerLoader) stages() error {
	if m := l.file.Model; m.Type != "BPE" && m.Type != "" {
		return misfit("model.type", quoted(m.Type), "BPE")
	} else if m.ByteFallback {
		return misfit("model.byte_fallback", "true", "false: every byte has a token of its own")
	} else if m.ContinuingSubwordPrefix != nil && *m.ContinuingSubwordPrefix != "" {
		return misfit("model.continuing_subword_prefix", quoted(*m.ContinuingSubwordPrefix), "none")
	} else if m.EndOfWordSuffix != nil && *m.EndOfWordSuffix != "" {
		return misfit("model.end_of_word_suffix", quoted(*m.EndOfWordSuffix), "none")
	}

	for _, n := range flatten(l.file.Normalizer, func(s *stage) []stage { return s.Normalizers }) {
		if n.Type != "NFC" {
			return misfit("normalizer", quoted(n.Type), "NFC or none")
		}
		l.t.nfc = true
	}

	pre := flatten(l.file.PreTokenizer, func(s *stage) []stage { return s.Pretokenizers })
	if len(pre) != 2 || pre[0].Type != "Split" || pre[1].Type != "ByteLevel" {
		return misfit("pre_tokenizer", stageNames(pre), "a Sequence of Split and ByteLevel")
	}
	if split := pre[0]; split.Pattern.Regex != l.family.SplitPattern {
		return misfit("pre_tokenizer.pattern", quoted(split.Pattern.Regex+split.Pattern.String),
			"the pattern of the %s family, %q", l.family.Name, l.family.SplitPattern)
	} else if split.Behavior != "Isolated" || split.Invert {
		return misfit("pre_tokenizer.behavior", fmt.Sprintf("%q, invert %v", split.Behavior, split.Invert),
			"Isolated, not inverted")
	}
	if level := pre[1]; level.AddPrefixSpace == nil || *level.AddPrefixSpace {
		return misfit("pre_tokenizer.add_prefix_space", "true (or absent, which means true)", "false")
	} else if level.UseRegex == nil || *level.UseRegex {
		return misfit("pre_tokenizer.use_regex", "true (or absent, which means true)", "false")
	}
	if post := l.file.PostProcessor; post != nil && post.Type != "ByteLevel" {
		return misfit("post_processor", quoted(post.Type), "ByteLevel or none: nothing may be added to a prompt")
	}
	if decoder := l.file.Decoder; decoder != nil && decoder.Type != "ByteLevel" {
		return misfit("decoder", quoted(decoder.Type), "ByteLevel")
	}
	return nil
}

// vocabulary turns the tokens, written in the byte alphabet, into bytes.
func (l *tokenizerLoader) vocabulary() error {
	if len(l.file.Model.Vocab) == 0 {
		return misfit("model.vocab", "no tokens", "the base vocabulary")
	}
	isAdded := map[string]bool{}
	largest := int64(-1)
	for i, token := range l.file.AddedTokens {
		if token.ID < 0 || token.ID > largestID {
			return misfit(fmt.Sprintf("added_tokens[%d].id", i), fmt.Sprint(token.ID), "0 to %d", largestID)
		}
		isAdded[token.Content] = true
		largest = max(largest, token.ID)
	}
	for token, id := range l.file.Model.Vocab {
		if id < 0 || id > largestID {
			return misfit("model.vocab["+quoted(token)+"]", fmt.Sprint(id), "0 to %d", largestID)
		}
		largest = max(largest, id)
	}
	l.t.pieces = make([][]byte, largest+1)
	l.t.flags = make([]tokenFlag, largest+1)
	for token, id := range l.file.Model.Vocab {
		if isAdded[token] {
			continue // some files list added tokens here too
		}
		piece, ok := alphabetBytes(token)
		if !ok {
			return misfit("model.vocab["+quoted(token)+"]", "a character outside the byte alphabet",
				"byte-level tokens")
		}
		if l.t.pieces[id] != nil {
			return misfit("model.vocab["+quoted(token)+"]", fmt.Sprintf("id %d a second time", id), "one token an id")
		}
		l.t.pieces[id] = piece
		l.t.words[string(piece)] = int32(id)
	}
	return nil
}

// bytes finds the token of every byte, from which all words are built.
func (l *tokenizerLoader) bytes() error {
	for b := range l.t.byteID {
		id, ok := l.t.words[string([]byte{byte(b)})]
		if !ok {
			return misfit("model.vocab", fmt.Sprintf("no token for the byte 0x%02x", b),
				"one for each of the 256 bytes")
		}
		l.t.byteID[b] = id
	}
	return nil
}

// merges reads the merges, best first, each a pair or two tokens with a blank between.
func (l *tokenizerLoader) merges() error {
	vocab := l.file.Model.Vocab
	for rank, raw := range l.file.Model.Merges {
		field := fmt.Sprintf("model.merges[%d]", rank)
		left, right, ok := mergeSides(raw)
		if !ok {
			return misfit(field, shorten(string(raw)), `["a","b"] or "a b"`)
		}
		leftID, okLeft := vocab[left]
		rightID, okRight := vocab[right]
		id, okBoth := vocab[left+right]
		if !okLeft || !okRight || !okBoth {
			return misfit(field, shorten(string(raw)), "two tokens of the vocabulary whose joined text is one too")
		}
		key := pairKey(int32(leftID), int32(rightID))
		if _, seen := l.t.merges[key]; !seen {
			l.t.merges[key] = merged{rank: int32(rank), id: int32(id)}
		}
	}
	return nil
}

// addedTokens registers the tokens that are matched in raw text.
func (l *tokenizerLoader) addedTokens() error {
	var tokens []addedToken
	seen := map[string]bool{}
	for i, token := range l.file.AddedTokens {
		field := fmt.Sprintf("added_tokens[%d]", i)
		switch {
		case token.Content == "" || !utf8.ValidString(token.Content):
			return misfit(field+".content", quoted(token.Content), "text")
		case seen[token.Content]:
			return misfit(field+".content", quoted(token.Content)+" a second time", "each token once")
		case l.t.pieces[token.ID] != nil:
			return misfit(field+".id", fmt.Sprintf("%d, which is already %s", token.ID,
				quoted(string(l.t.pieces[token.ID]))), "an id of its own")
		case token.Single || token.Left || token.Right:
			return misfit(field, "single_word, lstrip or rstrip", "tokens that are matched literally")
		}
		seen[token.Content] = true
		l.t.pieces[token.ID] = []byte(token.Content)
		l.t.flags[token.ID] = flagAdded
		if token.Special {
			l.t.flags[token.ID] |= flagSpecial
			if !slices.Contains(l.family.ParserTags, token.Content) {
				l.t.flags[token.ID] |= flagControl
			}
		}
		tokens = append(tokens, addedToken{text: token.Content, id: int32(token.ID)})
	}
	l.t.added = newAddedTokens(tokens)
	return nil
}

// mergeSides splits a merge in either form.
func mergeSides(raw json.RawMessage) (left, right string, ok bool) {
	var sides []string
	if json.Unmarshal(raw, &sides) == nil {
		if len(sides) != 2 {
			return "", "", false
		}
		return sides[0], sides[1], true
	}
	var joined string
	if json.Unmarshal(raw, &joined) != nil {
		return "", "", false
	}
	left, right, ok = strings.Cut(joined, " ")
	return left, right, ok && !strings.Contains(right, " ")
}

// flatten lists a stage, or the members of a Sequence, whose own members are not expected.
func flatten(s *stage, members func(*stage) []stage) []stage {
	switch {
	case s == nil:
		return nil
	case s.Type == "Sequence":
		return members(s)
	}
	return []stage{*s}
}

func stageNames(stages []stage) string {
	var names []string
	for _, s := range stages {
		names = append(names, s.Type)
	}
	return "[" + strings.Join(names, " ") + "]"
}

func quoted(s string) string { return fmt.Sprintf("%q", shorten(s)) }

// shorten keeps a value from a file short enough for an error.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// byteAlphabet writes bytes as the characters that byte-level vocabularies use: printable Latin-1 is itself, the
// other bytes, in their order, for U+0100 and on.
var byteAlphabet = func() map[rune]byte {
	alphabet := map[rune]byte{}
	next := rune(0x100)
	for b := 0; b < 256; b++ {
		switch {
		case b >= '!' && b <= '~', b >= 0xA1 && b <= 0xAC, b >= 0xAE:
			alphabet[rune(b)] = byte(b)
		default:
			alphabet[next] = byte(b)
			next++
		}
	}
	return alphabet
}()

// alphabetBytes gives the bytes of a token written in the byte alphabet.
func alphabetBytes(token string) ([]byte, bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := byteAlphabet[r]
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, len(out) > 0
}

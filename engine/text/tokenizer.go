package text

import (
	"math"
	"strings"
	"sync"
)

// Tokenizer is a byte-level BPE tokenizer read from tokenizer.json. It is immutable and safe for concurrent use.
type Tokenizer struct {
	file    string
	nfc     bool                  // the file asks for normalisation form C
	pieces  [][]byte              // id -> bytes; nil where the file defines no token
	flags   []tokenFlag           // id -> flags, same length as pieces
	words   map[string]int32      // bytes -> id, base vocabulary only
	added   addedTokens           // matched in raw text
	byteID  [256]int32            // byte -> id of its one-byte token
	merges  map[uint64]merged     // left id <<32 | right id
	longest [256]int32            // byte -> length of the longest token that holds it
	wordEnd func(string, int) int // of the family
	whole   bool                  // ignore_merges: a word that is a token is that token, merges unseen
	pool    sync.Pool             // *encoder
}

type tokenFlag uint8

const (
	flagAdded   tokenFlag = 1 << iota // listed under added_tokens
	flagSpecial                       // added with special: true
	flagControl                       // special, and not a tag that the reply parser reads
)

// EncodeOptions says how text is to be read.
type EncodeOptions struct {
	// SpecialTokens recognises the literal text of added tokens ("<|im_end|>", "<think>") and gives their ids, as raw
	// completion prompts want. False takes all of it as plain text: no id at or above the added ones comes out.
	SpecialTokens bool
}

// Encode gives the ids of s, with nothing added before or after. Added tokens are looked for in the raw text, leftmost
// and longest first; the text between is normalised (NFC), split into words and merged. Invalid UTF-8 is taken as
// U+FFFD, one for each maximal invalid part.
func (t *Tokenizer) Encode(s string, opt EncodeOptions) []int32 {
	ids, _ := t.encode(s, nil, opt.SpecialTokens, math.MaxInt)
	return ids
}

// EncodePrompt gives the ids of a rendered prompt. Added tokens are recognised where the template wrote them, and never
// where a person's text spells one out (see [Prompt]).
func (t *Tokenizer) EncodePrompt(p Prompt) []int32 {
	ids, _ := t.encode(p.Text, p.guards, true, math.MaxInt)
	return ids
}

// encode stops once more than most ids are certain; atLeast is then how many there are, and 0 otherwise.
func (t *Tokenizer) encode(s string, guards []guard, special bool, most int) (ids []int32, atLeast int) {
	e, _ := t.pool.Get().(*encoder)
	if e == nil {
		e = newEncoder(t)
	}
	defer func() {
		e.trim()
		t.pool.Put(e)
	}()
	e.most, e.atLeast = most, 0
	ids = make([]int32, 0, min(len(s)/4, most)+8)
	plainFrom := 0
	for at := 0; special && at < len(s); {
		start, end, id := t.added.next(s, at, guards)
		if id < 0 {
			break
		}
		ids = e.segment(ids, s[plainFrom:start])
		ids = append(ids, id)
		if e.full(len(ids)) {
			return nil, e.atLeast
		}
		at, plainFrom = end, end
	}
	ids = e.segment(ids, s[plainFrom:])
	if e.full(len(ids)) {
		return nil, e.atLeast
	}
	return ids, 0
}

// Decode gives the text of ids, added tokens included. Ids without a token give nothing. Bytes that are not UTF-8
// become U+FFFD, one for each maximal invalid part.
func (t *Tokenizer) Decode(ids []int32) string {
	var raw []byte
	for _, id := range ids {
		raw = append(raw, t.TokenBytes(id)...)
	}
	var out strings.Builder
	out.Grow(len(raw))
	decodeUTF8(&out, raw, true)
	return out.String()
}

// VocabSize is one more than the largest id the file defines. The network may have more rows (padding), never fewer.
func (t *Tokenizer) VocabSize() int { return len(t.pieces) }

// ID gives the id whose text is exactly token: an added token first, then a token of the base vocabulary.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added.id(token); ok {
		return id, true
	}
	id, ok := t.words[token]
	return id, ok
}

// IsSpecial reports whether the file lists id as an added token with "special": true.
func (t *Tokenizer) IsSpecial(id int32) bool { return t.flag(id)&flagSpecial != 0 }

// IsControl reports whether id is special and not one of the tags that the family's parser reads: such a token has no
// text in a reply.
func (t *Tokenizer) IsControl(id int32) bool { return t.flag(id)&flagControl != 0 }

func (t *Tokenizer) flag(id int32) tokenFlag {
	if id < 0 || int(id) >= len(t.flags) {
		return 0
	}
	return t.flags[id]
}

// TokenBytes gives the bytes of one token, which need not be whole characters; nil where the file defines none. The
// slice belongs to the tokenizer: do not write to it.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.pieces) {
		return nil
	}
	return t.pieces[id]
}

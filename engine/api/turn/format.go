package turn

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"slipway/engine/sample"
	"slipway/engine/structured"
	"slipway/engine/text"
)

// formats holds replies to what their requests say of their form. Schemas are compiled before the request is queued,
// and the latest are kept: agents send the same one with every request.
type formats struct {
	text       *text.Model
	vocabulary func() (*structured.Vocabulary, error)

	mu   sync.Mutex
	kept []keptGrammar // the latest last
}

type keptGrammar struct {
	schema  string
	grammar *structured.Grammar
}

// mostGrammars bounds what is kept of schemas.
const mostGrammars = 16

func newFormats(m *text.Model) *formats {
	return &formats{text: m, vocabulary: sync.OnceValues(func() (*structured.Vocabulary, error) {
		t := m.Tokenizer
		tags := map[int32]bool{}
		for _, tag := range m.Family.ParserTags {
			if id, ok := t.ID(tag); ok {
				tags[id] = true
			}
		}
		return structured.NewVocabulary(t.VocabSize(), func(id int32) []byte {
			if tags[id] || t.IsSpecial(id) {
				return nil
			}
			return t.TokenBytes(id)
		})
	})}
}

// grammar compiles a schema, or takes it from those that are kept.
func (f *formats) grammar(format *Format) (*structured.Grammar, *Error) {
	schema := format.Schema
	if schema == nil {
		schema = structured.AnyObject
	}
	if g := f.keptOf(string(schema)); g != nil {
		return g, nil
	}
	vocabulary, err := f.vocabulary()
	if err != nil {
		return nil, Invalid(format.Param, "cannot be kept by this model: %v", err)
	}
	g, err := structured.Compile(vocabulary, schema)
	if refused := (*structured.Error)(nil); errors.As(err, &refused) {
		return nil, Invalid(format.Param, "cannot be kept: %v", refused)
	} else if err != nil {
		return nil, AsError(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kept) == mostGrammars {
		f.kept = f.kept[1:]
	}
	f.kept = append(f.kept, keptGrammar{string(schema), g})
	return g, nil
}

func (f *formats) keptOf(schema string) *structured.Grammar {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, k := range f.kept {
		if k.schema == schema {
			f.kept = append(append(f.kept[:i:i], f.kept[i+1:]...), k)
			return k.grammar
		}
	}
	return nil
}

// mask makes for each reply of this form what gives the tokens that may come in it. With tools, the reply may begin
// with a call instead.
func (f *formats) mask(q *Request, thinking bool) (func() func(reply []int32) sample.Mask, *Error) {
	g, failure := f.grammar(q.Format)
	if failure != nil {
		return nil, failure
	}
	t := f.text.Tokenizer
	end, _ := t.ID(f.text.Family.TurnEnds)
	h := held{grammar: g, end: end, bytesOf: t.TokenBytes, vocabTokens: t.VocabSize(), call: -1}
	if thinking {
		h.thinkingEnds = []byte(strings.TrimSpace(f.text.Family.ThinkingEnds))
	}
	if len(q.Tools) > 0 && q.Choice.Calling == CallAuto {
		opening := t.Encode(f.text.Family.CallOpening(false), text.EncodeOptions{SpecialTokens: true})
		h.call = opening[0]
	}
	return func() func([]int32) sample.Mask {
		of := h
		return of.mask
	}, nil
}

// held is one reply that is held to a grammar, from the end of its thinking on.
type held struct {
	grammar      *structured.Grammar
	end          int32 // the token that ends a reply
	call         int32 // the token that begins a call; negative: none may come
	bytesOf      func(int32) []byte
	vocabTokens  int
	thinkingEnds []byte // what the reply's thinking ends with; nil: it has none

	// What was read of the reply, to be read again where it changes.
	tokens   []int32
	ends     []int // of each token in text
	text     []byte
	begins   int // index of the first token behind the thinking
	follower *structured.Follower
	open     sample.Mask // of thinking: everything but the end
}

func (h *held) mask(reply []int32) sample.Mask {
	if !h.begun(reply) {
		if h.open == nil {
			h.open = sample.NewMask(h.vocabTokens)
			for id := range int32(h.vocabTokens) {
				if id != h.end {
					h.open.Allow(id)
				}
			}
		}
		return h.open
	}
	content := reply[h.begins:]
	if h.call < 0 {
		return h.follower.Mask(content)
	}
	spoken := content
	for len(spoken) > 0 && len(bytes.TrimSpace(h.bytesOf(spoken[0]))) == 0 {
		spoken = spoken[1:]
	}
	if len(spoken) > 0 && spoken[0] == h.call {
		return nil
	}
	mask := h.follower.Mask(content)
	if len(spoken) == 0 {
		mask.Allow(h.call)
	}
	return mask
}

// begun reports whether the thinking has ended, and sets where.
func (h *held) begun(reply []int32) bool {
	if h.thinkingEnds == nil {
		if h.follower == nil {
			h.follower = h.grammar.Follow([]int32{h.end}, nil)
		}
		return true
	}
	same := 0
	for same < len(reply) && same < len(h.tokens) && reply[same] == h.tokens[same] {
		same++
	}
	if h.follower != nil && same >= h.begins {
		return true
	}
	h.follower = nil
	h.tokens, h.ends = h.tokens[:same], h.ends[:same]
	h.text = h.text[:h.length()]
	for _, id := range reply[same:] {
		from := max(0, len(h.text)-len(h.thinkingEnds)+1)
		h.text = append(h.text, h.bytesOf(id)...)
		h.tokens, h.ends = append(h.tokens, id), append(h.ends, len(h.text))
		if i := bytes.Index(h.text[from:], h.thinkingEnds); i >= 0 {
			// what the same token holds behind the tag is of the content
			h.begins = len(h.tokens)
			h.follower = h.grammar.Follow([]int32{h.end}, h.text[from+i+len(h.thinkingEnds):])
			return true
		}
	}
	return false
}

// length is that of the text of the tokens that are kept.
func (h *held) length() int {
	if len(h.ends) == 0 {
		return 0
	}
	return h.ends[len(h.ends)-1]
}

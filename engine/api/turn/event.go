package turn

import (
	"slipway/engine/serve"
	"slipway/engine/text"
)

// EventKind says what a step of a reply is.
type EventKind int

const (
	Reasoning     EventKind = iota // Text: more of the model's thinking
	Content                        // Text: more of the answer
	CallStart                      // Index, ID, Name: a call begins; its first arguments follow at once
	CallArguments                  // Index, Text: more of the arguments' JSON
	CallEnd                        // Index: the call is complete; the texts of its arguments joined are a JSON object
	Ended                          // End: nothing follows
)

// Event is a step of a reply that has become certain.
type Event struct {
	Kind     EventKind
	Text     string // never empty where it is used
	Index    int    // of the call, from 0
	ID, Name string
	Tokens   []Token // of Content: the tokens whose text came out with it, where they are reported
	End      *End
}

// Token is one token of the answer. Its logprob is the network's own, before penalties, temperature and truncation.
type Token struct {
	Text    string // half a character is U+FFFD
	Bytes   []byte // belongs to the tokenizer
	Logprob float64
	Top     []Token // the likeliest at this place, likeliest first; they have no Top
}

// note keeps a token until its text comes out as content. In a conversation's reply forced tokens and tags are not
// reported.
func (r *Reply) note(t serve.Token) {
	tokenizer := r.service.opt.Text.Tokenizer
	if !r.reports || r.reading != nil && (t.Forced || tokenizer.IsSpecial(t.ID)) {
		return
	}
	token := tokenOf(tokenizer, t.ID, t.Logprob.Logprob)
	for _, top := range t.Top {
		token.Top = append(token.Top, tokenOf(tokenizer, top.ID, top.Logprob))
	}
	r.waiting = append(r.waiting, token)
}

func tokenOf(tokenizer *text.Tokenizer, id int32, logprob float64) Token {
	return Token{Text: tokenizer.Decode([]int32{id}), Bytes: tokenizer.TokenBytes(id), Logprob: logprob}
}

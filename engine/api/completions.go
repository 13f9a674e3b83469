package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"slipway/engine/serve"
	"slipway/engine/text"
)

// textRequest is a text completion's body, understood.
type textRequest struct {
	generation
	prompt []int32
}

// defaultTextTokens is OpenAI's default for /v1/completions.
const defaultTextTokens = 16

// completions answers POST /v1/completions. The prompt is taken raw: added tokens are recognised, nothing is added.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, rec *record) *Error {
	o, release, failure := s.body(w, r)
	defer release()
	if failure != nil {
		return failure
	}
	entry, ctx := s.opt.Engine.Ledger().Open(r.Context(), rec.id)
	defer entry.Drop() // where it is refused
	start := s.opt.Now()
	q, failure := s.readText(o)
	if failure != nil {
		return failure
	}
	release()
	reply, err := s.opt.Engine.Submit(ctx, serve.Request{
		ID: rec.id, Entry: entry, Prompt: q.prompt, MaxTokens: q.maxTokens, Sampling: q.params, Seed: q.seed, TopLogprobs: q.topLogprobs,
		Stop: q.stop, Text: s.opt.Tokenizer.NewStream(), Tokenize: s.opt.Now().Sub(start),
	})
	if err != nil {
		return asError(err)
	}
	head := chatHead{ID: newID("cmpl-"), Object: "text_completion", Created: s.opt.Now().Unix(), Model: s.opt.ModelID, Fingerprint: s.fingerprint()}
	a := &textAssembler{tokenizer: s.opt.Tokenizer, withLogprobs: q.topLogprobs >= 0}
	if q.stream {
		return s.streamText(rec, reply, q, head, a)
	}
	return s.plainText(rec, reply, head, a)
}

func (s *Server) readText(o *object) (*textRequest, *Error) {
	if err := s.wrongModel(o); err != nil {
		return nil, err
	}
	q := &textRequest{generation: s.readGeneration(o)}
	if q.maxTokens == 0 {
		q.maxTokens = defaultTextTokens
	}
	if n, given := o.integer("logprobs", 0, 5); given {
		q.topLogprobs = int(n)
	}
	o.only("echo", "the prompt is not sent back", "false")
	o.only("suffix", "filling in the middle is not supported", `""`)
	if n, given := o.integer("best_of", math.MinInt64, math.MaxInt64); given && n != 1 {
		o.fail("best_of", "is %d; this server gives one reply a request (best_of 1)", n)
	}
	raw := o.take("prompt")
	if err := o.done(); err != nil {
		return nil, err
	}
	var err *Error
	q.prompt, err = s.readPrompt("prompt", raw, true)
	return q, err
}

// readPrompt takes a string, an array of token ids, or an array that holds one of either.
func (s *Server) readPrompt(path string, raw json.RawMessage, nested bool) ([]int32, *Error) {
	switch {
	case raw == nil:
		return nil, invalid(path, "is required")
	case raw[0] == '"':
		var prompt string
		if json.Unmarshal(raw, &prompt) != nil {
			return nil, invalid(path, "is not a string")
		}
		return s.encode(path, text.Prompt{Text: prompt})
	}
	if raw[0] != '[' {
		return nil, invalid(path, "must be a string or an array of token ids, not %s", kindOf(raw))
	}
	elements := readArray(raw)
	if nested && len(elements) > 0 && (elements[0][0] == '"' || elements[0][0] == '[') {
		if len(elements) > 1 {
			return nil, invalid(path, "holds %d prompts; this server takes one a request", len(elements))
		}
		return s.readPrompt(element(path, 0), elements[0], false)
	}
	ids := make([]int32, 0, len(elements))
	for i, e := range elements {
		id, err := strconv.ParseInt(string(bytes.TrimSpace(e)), 10, 64)
		if err != nil {
			return nil, invalid(element(path, i), "must be a token id, not %s", shown(e))
		}
		if id < 0 || id >= int64(s.opt.VocabTokens) {
			return nil, invalid(element(path, i), "is %d; token ids are in [0, %d)", id, s.opt.VocabTokens)
		}
		ids = append(ids, int32(id))
	}
	if len(ids) == 0 {
		return nil, invalid(path, "%v", serve.ErrEmptyPrompt)
	}
	return ids, nil
}

// textLogprobs is the older form of logprobs.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters of the reply
}

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

type textReply struct {
	chatHead
	Choices []textChoice `json:"choices"`
	Usage   **usage      `json:"usage,omitempty"`
	Slipway *note        `json:"slipway,omitempty"`
}

// textAssembler pairs text with the logprobs of its tokens.
type textAssembler struct {
	tokenizer    *text.Tokenizer
	withLogprobs bool
	waiting      *textLogprobs
	offset       int
}

// take gives the next piece; nil where nothing is certain yet.
func (a *textAssembler) take(e serve.Event) *textChoice {
	if a.withLogprobs && e.Token != nil {
		if a.waiting == nil {
			a.waiting = &textLogprobs{}
		}
		l, t := a.waiting, e.Token
		piece := a.tokenizer.Decode([]int32{t.ID})
		l.Tokens = append(l.Tokens, piece)
		l.TokenLogprobs = append(l.TokenLogprobs, t.Logprob.Logprob)
		l.TextOffset = append(l.TextOffset, a.offset)
		a.offset += utf8.RuneCountInString(piece)
		top := map[string]float64{piece: t.Logprob.Logprob} // as OpenAI does: the token chosen is always among them
		for _, other := range t.Top {
			name := a.tokenizer.Decode([]int32{other.ID})
			if _, there := top[name]; !there { // two halves of characters have one name; the likelier stays
				top[name] = other.Logprob
			}
		}
		l.TopLogprobs = append(l.TopLogprobs, top)
	}
	if e.Text == "" {
		return nil
	}
	choice := &textChoice{Text: e.Text, Logprobs: a.waiting}
	a.waiting = nil
	return choice
}

func (s *Server) plainText(rec *record, reply *serve.Reply, head chatHead, a *textAssembler) *Error {
	p := &plain{rec}
	var whole textChoice
	if a.withLogprobs {
		whole.Logprobs = &textLogprobs{[]string{}, []float64{}, []map[string]float64{}, []int{}}
	}
	end, err := s.follow(rec, reply, func(e serve.Event) error {
		if piece := a.take(e); piece != nil {
			whole.Text += piece.Text
			if l := piece.Logprobs; l != nil {
				whole.Logprobs.Tokens = append(whole.Logprobs.Tokens, l.Tokens...)
				whole.Logprobs.TokenLogprobs = append(whole.Logprobs.TokenLogprobs, l.TokenLogprobs...)
				whole.Logprobs.TopLogprobs = append(whole.Logprobs.TopLogprobs, l.TopLogprobs...)
				whole.Logprobs.TextOffset = append(whole.Logprobs.TextOffset, l.TextOffset...)
			}
		}
		return nil
	}, p.idle)
	if err != nil {
		return nil // the client is gone
	}
	finish := string(end.Reason)
	whole.FinishReason = &finish
	said := notice(end, false, true)
	u := s.usageOf(end, 0, said)
	return p.finish(textReply{head, []textChoice{whole}, &u, noteOf(said)}, failureOf(end))
}

func (s *Server) streamText(rec *record, reply *serve.Reply, q *textRequest, head chatHead, a *textAssembler) *Error {
	out := openStream(rec)
	chunk := func(c textChoice, n *note) textReply {
		t := textReply{chatHead: head, Choices: []textChoice{c}, Slipway: n}
		if q.includeUsage {
			t.Usage = new(*usage)
		}
		return t
	}
	idle := func() error { return out.send(chunk(textChoice{}, nil)) }
	if err := idle(); err != nil { // the head and something goes out at once
		reply.Cancel(err)
		return nil
	}
	end, err := s.follow(rec, reply, func(e serve.Event) error {
		if piece := a.take(e); piece != nil {
			return out.send(chunk(*piece, nil))
		}
		return nil
	}, idle)
	if err != nil {
		return nil // the client is gone
	}
	if failure := failureOf(end); failure != nil {
		out.send(failure)
		return failure
	}
	finish, said := string(end.Reason), notice(end, false, true)
	if out.send(chunk(textChoice{FinishReason: &finish}, noteOf(said))) != nil {
		return nil
	}
	if q.includeUsage {
		u := s.usageOf(end, 0, said)
		if out.send(textReply{chatHead: head, Choices: []textChoice{}, Usage: &u}) != nil {
			return nil
		}
	}
	out.done()
	return nil
}

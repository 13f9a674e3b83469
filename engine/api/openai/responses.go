package openai

import (
	"net/http"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/engine/text"
	"slipway/wire"
)

// responses answers POST /v1/responses.
func (w *Wire) responses(rec *web.Record, r *http.Request) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	a, failure := w.readResponse(o)
	if failure != nil {
		return failure
	}
	o = nil // release gives its memory back
	if !a.store {
		a.conversation = nil
	}
	reply, failure := w.turns.Start(r.Context(), rec.ID, a.turn, release)
	switch {
	case failure != nil && a.stream && failure.Code == overflow: // as OpenAI sends it, and Codex shortens for
		s := w.newResponseStream(rec, a)
		s.send("response.failed", responseEvent{Response: w.failed(s.response, failure)})
		return failure
	case failure != nil:
		return failure
	case a.stream:
		return w.streamResponse(rec, reply, a)
	}
	return w.plainResponse(rec, reply, a)
}

// response is OpenAI's response object.
type response struct {
	ID         string            `json:"id"`
	Object     string            `json:"object"`
	CreatedAt  int64             `json:"created_at"`
	Status     string            `json:"status"`
	Background bool              `json:"background"`
	Error      *responseError    `json:"error"`
	Incomplete *incompleteReason `json:"incomplete_details"`
	Model      string            `json:"model"`
	Output     []item            `json:"output"`
	Tier       string            `json:"service_tier"`
	Usage      *responseUsage    `json:"usage"`
	Slipway    *wire.Note        `json:"slipway,omitempty"`
	echo
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incompleteReason struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input   int `json:"input_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total   int        `json:"total_tokens"`
	Slipway wire.Spent `json:"slipway"`
}

// item is one of a response's output. Of its members, those of its type are there.
type item struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Status    string  `json:"status"`
	Role      string  `json:"role,omitempty"`
	Content   *[]part `json:"content,omitempty"`
	Summary   *[]part `json:"summary,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
}

// part is text of a message or of thinking.
type part struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations *[]any `json:"annotations,omitempty"`
	Logprobs    *[]any `json:"logprobs,omitempty"`
}

func (w *Wire) newResponse(a *asked) response {
	return response{ID: newResponseID(), Object: "response", CreatedAt: w.turns.Now().Unix(), Status: "in_progress",
		Model: w.turns.Model().ID, Output: []item{}, Tier: "default", echo: a.echo}
}

// kinds are the types of the items that events of a reply belong to.
var kinds = map[turn.EventKind]string{turn.Reasoning: "reasoning", turn.Content: "message",
	turn.CallStart: "function_call", turn.CallArguments: "function_call"}

// newItem begins an item without its text.
func newItem(kind string, e turn.Event, spaces map[string]name) item {
	switch kind {
	case "reasoning":
		return item{Type: kind, ID: turn.NewID("rs_"), Summary: &[]part{}, Content: &[]part{}}
	case "message":
		return item{Type: kind, ID: turn.NewID("msg_"), Role: "assistant", Content: &[]part{}}
	}
	call := item{Type: kind, ID: turn.NewID("fc_"), CallID: e.ID, Name: e.Name, Arguments: new(string)}
	if known, in := spaces[e.Name]; in {
		call.Namespace, call.Name = known.space, known.function
	}
	return call
}

// partOf is the text of an item; nil for a call.
func partOf(kind, whole string) *part {
	switch kind {
	case "reasoning":
		return &part{Type: "reasoning_text", Text: whole}
	case "message":
		return &part{Type: "output_text", Text: whole, Annotations: &[]any{}, Logprobs: &[]any{}}
	}
	return nil
}

// complete gives an item with its text.
func (i item) complete(whole string) item {
	i.Status = "completed"
	if p := partOf(i.Type, whole); p != nil {
		i.Content = &[]part{*p}
	} else {
		i.Arguments = &whole
	}
	return i
}

// end gives the response of a reply that has ended, and keeps it where that was asked for.
func (w *Wire) end(r response, a *asked, said turn.Message, end *turn.End) response {
	notice := end.Notice()
	r.Status, r.Slipway = "completed", web.NoteOf(notice)
	if end.Finish() == turn.FinishLength {
		r.Status, r.Incomplete = "incomplete", &incompleteReason{"max_output_tokens"}
	}
	u := &responseUsage{Input: end.Usage.PromptTokens(), Output: end.Usage.CompletionTokens,
		Slipway: web.SpentOf(end, notice)}
	u.Details.Cached, u.OutputDetails.Reasoning, u.Total = end.Usage.CachedTokens, end.ReasoningTokens, u.Input+u.Output
	r.Usage = u
	if a.store {
		w.kept.add(r, onto(a.conversation, a.turn.Continue, said))
	}
	return r
}

// onto gives a conversation with the reply to it.
func onto(conversation []text.Message, continued bool, said turn.Message) []text.Message {
	m := text.Message{Role: "assistant", Content: said.Content}
	if said.Reasoning != "" {
		m.ReasoningContent = &said.Reasoning
	}
	for _, c := range said.Calls {
		m.ToolCalls = append(m.ToolCalls, text.ToolCall{ID: c.ID, Name: c.Name, Arguments: []byte(c.Arguments)})
	}
	if last := len(conversation) - 1; continued {
		begun := conversation[last]
		m.Content = begun.Content + m.Content
		if m.ReasoningContent == nil {
			m.ReasoningContent = begun.ReasoningContent
		}
		conversation = conversation[:last:last]
	}
	return append(conversation, m)
}

// failed gives the response of a reply that has failed.
func (w *Wire) failed(r response, failure *turn.Error) *response {
	r.Status, r.Error = "failed", &responseError{failure.Code, sentenceOf(failure)}
	return &r
}

// plainResponse sends the reply in one piece.
func (w *Wire) plainResponse(rec *web.Record, reply *turn.Reply, a *asked) *turn.Error {
	r := w.newResponse(a)
	p := web.Plain{Record: rec}
	var said turn.Collector
	var texts []string // of the items
	end, err := web.Follow(rec, reply, w.keepAlive, func(e turn.Event) error {
		said.Add(e)
		kind := kinds[e.Kind]
		switch last := len(texts) - 1; {
		case kind == "":
			return nil
		case last < 0 || e.Kind == turn.CallStart || r.Output[last].Type != kind:
			r.Output, texts = append(r.Output, newItem(kind, e, a.spaces)), append(texts, "")
		}
		texts[len(texts)-1] += e.Text
		return nil
	}, p.Idle)
	if err != nil {
		return nil // the client is gone
	}
	if end.Failure != nil {
		return p.Finish(nil, end.Failure)
	}
	for i, whole := range texts {
		r.Output[i] = r.Output[i].complete(whole)
	}
	return p.Finish(w.end(r, a, said.Message(), end), nil)
}

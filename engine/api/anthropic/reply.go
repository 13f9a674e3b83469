package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
	"slipway/wire"
)

type message struct {
	ID           string     `json:"id"`
	Type         string     `json:"type"`
	Role         string     `json:"role"`
	Model        string     `json:"model"`
	Content      []block    `json:"content"`
	StopReason   *string    `json:"stop_reason"`
	StopSequence *string    `json:"stop_sequence"`
	Usage        usage      `json:"usage"`
	Slipway      *wire.Note `json:"slipway,omitempty"`
}

// block is a content block, whole or as a stream begins it.
type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

type usage struct {
	InputTokens   int         `json:"input_tokens"`
	CacheCreation int         `json:"cache_creation_input_tokens"`
	CacheRead     int         `json:"cache_read_input_tokens"`
	OutputTokens  int         `json:"output_tokens"`
	Slipway       *wire.Spent `json:"slipway,omitempty"`
}

func usageOf(end *turn.End, notice string) usage {
	spent := web.SpentOf(end, notice)
	return usage{InputTokens: end.Usage.ComputedTokens, CacheRead: end.Usage.CachedTokens,
		OutputTokens: end.Usage.CompletionTokens, Slipway: &spent}
}

func (w *Wire) newMessage() message {
	return message{ID: turn.NewID("msg_"), Type: "message", Role: "assistant", Model: w.turns.Model().ID,
		Content: []block{}}
}

// stopOf gives why a complete reply ended, in Anthropic's words.
func stopOf(end *turn.End) (reason string, sequence *string) {
	switch finish := end.Finish(); {
	case finish == turn.FinishLength:
		return "max_tokens", nil
	case finish == turn.FinishCalls:
		return "tool_use", nil
	case end.StopText != "":
		return "stop_sequence", &end.StopText
	}
	return "end_turn", nil
}

// signatureOf marks thinking as this server's. Clients send no thinking back that has none.
func signatureOf(thinking string) string {
	sum := sha256.Sum256([]byte(thinking))
	return "slipway-" + hex.EncodeToString(sum[:16])
}

// plain sends the reply in one piece.
func (w *Wire) plain(rec *web.Record, reply *turn.Reply) *turn.Error {
	m := w.newMessage()
	p := web.Plain{Record: rec}
	var texts []string // of the blocks
	end, err := web.Follow(rec, reply, w.keepAlive, func(e turn.Event) error {
		kind, fresh := kindOf[e.Kind], e.Kind == turn.CallStart
		switch {
		case kind == "":
			return nil
		case fresh || len(texts) == 0 || m.Content[len(texts)-1].Type != kind:
			m.Content, texts = append(m.Content, block{Type: kind, ID: e.ID, Name: e.Name}), append(texts, "")
		}
		texts[len(texts)-1] += e.Text
		return nil
	}, p.Idle)
	if err != nil {
		return nil // the client is gone
	}
	for i := range texts {
		switch b, whole := &m.Content[i], &texts[i]; b.Type {
		case "text":
			b.Text = whole
		case "thinking":
			signature := signatureOf(*whole)
			b.Thinking, b.Signature = whole, &signature
		case "tool_use":
			b.Input = json.RawMessage(*whole)
		}
	}
	notice := end.Notice()
	reason, sequence := stopOf(end)
	m.StopReason, m.StopSequence, m.Usage, m.Slipway = &reason, sequence, usageOf(end, notice), web.NoteOf(notice)
	return p.Finish(m, end.Failure)
}

// kindOf is the type of the block that an event of a reply belongs to.
var kindOf = map[turn.EventKind]string{
	turn.Reasoning: "thinking", turn.Content: "text", turn.CallStart: "tool_use", turn.CallArguments: "tool_use",
}

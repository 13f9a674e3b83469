package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slipway/fault"
	"slipway/wire"
	"strings"
	"time"
)

// Reply is what was received. Times are the client's clock.
type Reply struct {
	Asked     Request
	Started   time.Time // just before the request was sent
	Ended     time.Time
	Streamed  bool
	Whole     bool // the stream said [DONE], or the JSON was complete
	Text      string
	Reasoning string
	Calls     []ToolCall
	Finish    string
	Usage     *Usage // nil where the server gave none
	Notice    string // what the server said beside the answer
	Pieces    []Piece
}

// Piece is one event that carried something of the answer.
type Piece struct {
	At       time.Time
	Bytes    int
	IsCall   bool // of a tool call: several events may come from one token
	Thinking bool
}

// isEventStream looks at the type alone: what claims to be a stream is read as one.
func isEventStream(response *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// chunk is a stream's event or a whole reply; both name the turn differently.
type chunk struct {
	Choices []struct {
		Delta   turn   `json:"delta"`
		Message turn   `json:"message"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Timings *timings        `json:"timings"`
	Slipway wire.Note       `json:"slipway"`
	Error   json.RawMessage `json:"error"`
}

type turn struct {
	Content    string       `json:"content"`
	Reasoning  string       `json:"reasoning_content"`
	Reasoning2 string       `json:"reasoning"` // OpenRouter's and vLLM's newer name
	Calls      []streamCall `json:"tool_calls"`
}

// streamCall is a piece of a call; Index says of which, nil in a reply that is not streamed.
type streamCall struct {
	Index *int `json:"index"`
	ToolCall
}

// readStream reads server-sent events until [DONE]. Lines that are no data are comments and names of events.
func (s *Server) readStream(ctx context.Context, body *counted, reply *Reply) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			if strings.HasPrefix(strings.TrimSpace(lines.Text()), "<") {
				return &Fault{Kind: NotJSON, Why: "a web page (HTML) came in the middle of a stream: " +
					s.scrub(head(lines.Bytes())), Pieces: len(reply.Pieces)}
			}
			continue
		}
		if data = strings.TrimSpace(data); data == "[DONE]" {
			reply.Whole = true
			return nil
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil && json.Valid([]byte(data)) {
			return &Fault{Kind: WrongShape, Why: "an event of the stream has not the shape of a chat completion's: " +
				s.scrub(err.Error()), Pieces: len(reply.Pieces)}
		} else if err != nil {
			return &Fault{Kind: NotJSON, Why: "an event of the stream is no JSON: " + s.scrub(head([]byte(data))),
				Pieces: len(reply.Pieces)}
		}
		if said, _ := s.errorIn([]byte(data)); said != "" || len(c.Error) > 0 && string(c.Error) != "null" {
			return &Fault{Kind: BrokeOff, Why: fmt.Sprintf("the server broke off after %d pieces of its answer with "+
				"an error: %s", len(reply.Pieces), said), Pieces: len(reply.Pieces)}
		}
		s.take(c, reply)
	}
	err := lines.Err()
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, bufio.ErrTooLong):
		return &Fault{Kind: CutStream, Why: fmt.Sprintf("the connection broke after %d pieces, before the stream "+
			"said [DONE]: %s", len(reply.Pieces), s.scrub(fault.Innermost(err))), Pieces: len(reply.Pieces)}
	}
	return &Fault{Kind: CutStream, Why: fmt.Sprintf("the stream ended after %d pieces without saying [DONE], so the "+
		"answer may be incomplete", len(reply.Pieces)), Pieces: len(reply.Pieces)}
}

// take adds an event to the reply.
func (s *Server) take(c chunk, reply *Reply) {
	if len(c.Choices) > 0 {
		choice := c.Choices[0]
		text, reasoning := choice.Delta.Content+choice.Message.Content, choice.Delta.Reasoning+choice.Message.Reasoning
		if reasoning == "" {
			reasoning = choice.Delta.Reasoning2 + choice.Message.Reasoning2
		}
		calls := append(choice.Delta.Calls, choice.Message.Calls...)
		if n := len(text) + len(reasoning); n > 0 || len(calls) > 0 {
			reply.Pieces = append(reply.Pieces, Piece{At: time.Now(), Bytes: n, IsCall: len(calls) > 0,
				Thinking: text == "" && reasoning != ""})
		}
		reply.Text += text
		reply.Reasoning += reasoning
		for i, call := range calls {
			at := i
			if call.Index != nil {
				at = *call.Index
			}
			s.takeCall(at, call, reply)
		}
		if choice.Finish != "" {
			reply.Finish = Printable(choice.Finish)
		}
		if reply.Asked.OnPiece != nil && text+reasoning != "" {
			reply.Asked.OnPiece(text+reasoning, text == "")
		}
	}
	if usage := readUsage(c.Usage, c.Timings); usage != nil {
		reply.Usage = usage
	}
	if c.Slipway.Notice != "" {
		reply.Notice = s.scrub(c.Slipway.Notice)
	} else if reply.Usage != nil && reply.Usage.Notice != "" {
		reply.Notice = s.scrub(reply.Usage.Notice)
	}
}

// maxCalls bounds what an index of a stream can make us hold.
const maxCalls = 128

func (s *Server) takeCall(at int, call streamCall, reply *Reply) {
	if at < 0 || at >= maxCalls {
		return
	}
	for len(reply.Calls) <= at {
		reply.Calls = append(reply.Calls, ToolCall{Type: "function"})
	}
	into := &reply.Calls[at]
	if call.ID != "" {
		into.ID = call.ID
	}
	into.Function.Name += call.Function.Name
	into.Function.Arguments += call.Function.Arguments
}

func (s *Server) readPlain(response *http.Response, raw []byte, reply *Reply) error {
	if response.StatusCode != http.StatusOK {
		return s.refused(response, raw)
	}
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil && json.Valid(raw) {
		return &Fault{Kind: WrongShape, Why: "the answer has not the shape of a chat completion: " +
			s.scrub(err.Error())}
	} else if err != nil {
		return s.notJSON(response, raw)
	}
	if said, _ := s.errorIn(raw); said != "" { // our server's own form of a failure after white space was sent
		return &Fault{Kind: BrokeOff, Status: response.StatusCode, Why: "the server broke off with an error: " + said}
	}
	if len(c.Choices) == 0 {
		return &Fault{Kind: WrongShape, Why: "the answer is JSON, but no chat completion: it has no choices: " +
			s.scrub(head(raw))}
	}
	s.take(c, reply)
	reply.Whole = true
	return nil
}

// FirstPiece is when the first piece of the answer came; zero where the answer did not come as a stream or was empty.
func (r *Reply) FirstPiece() time.Time {
	if !r.Streamed || len(r.Pieces) == 0 {
		return time.Time{}
	}
	return r.Pieces[0].At
}

// Answer is the text without thinking, trimmed.
func (r *Reply) Answer() string { return strings.TrimSpace(r.Text) }

package operate

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"slipway/checks/client"
	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
)

// AskInput is one question to the running server.
type AskInput struct {
	Question  string       `json:"question"`   // not empty
	MaxTokens int          `json:"max_tokens"` // longest answer, at least 1
	OnPiece   func(string) `json:"-"`          // gets the answer's pieces as they come; nil: nothing does
}

// AskAnswer is the server's answer.
type AskAnswer struct {
	Model    string `json:"model"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// Ask asks the running server once, greedily. Errors: a usage *Error, ErrNotSetUp and those of Running, or
// *ServerError.
func (o *Operator) Ask(ctx context.Context, in AskInput) (AskAnswer, error) {
	if strings.TrimSpace(in.Question) == "" {
		return AskAnswer{}, wrong("ask needs a question")
	}
	if in.MaxTokens < 1 {
		return AskAnswer{}, wrong("--max-tokens is %d, and must be at least 1", in.MaxTokens)
	}
	set, err := o.Running(ctx)
	if err != nil {
		return AskAnswer{}, err
	}
	reply, err := o.askAloud(ctx, set, in)
	if err != nil {
		return AskAnswer{}, err
	}
	return AskAnswer{set.ModelID, in.Question, reply.Text}, nil
}

// askAloud says what is waited for until the answer begins, and not a word between its pieces.
func (o *Operator) askAloud(ctx context.Context, set launch.Settings, in AskInput) (reply *client.Reply, err error) {
	begun, cleared, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begin, onPiece := sync.OnceFunc(func() { close(begun) }), in.OnPiece
	in.OnPiece = func(piece string) {
		begin()
		<-cleared
		if onPiece != nil {
			onPiece(piece)
		}
	}
	go func() {
		defer close(ended)
		reply, err = askOnce(ctx, set.Port, set.ModelID, in)
	}()
	o.during("Waiting for the answer", func() error {
		select {
		case <-begun:
		case <-ended:
		}
		return nil
	})
	o.Caller.Report(apply.Event{Kind: "done"})
	close(cleared)
	<-ended
	return reply, err
}

// askOnce puts one question to a server of ours on a loopback port and returns the complete answer.
func askOnce(ctx context.Context, port int, model string, in AskInput) (*client.Reply, error) {
	server, err := client.New(launch.URL(port), model, "")
	if err != nil {
		return nil, err
	}
	reply, err := server.Chat(ctx, client.Request{
		Messages: []client.Message{client.Say("system", "You are a helpful assistant."),
			client.Say("user", in.Question)},
		MaxTokens: in.MaxTokens,
		OnPiece: func(piece string, reasoning bool) {
			if in.OnPiece != nil && !reasoning {
				in.OnPiece(piece)
			}
		},
	})
	if failed, ok := errors.AsType[*client.Fault](err); ok {
		return nil, &ServerError{failed}
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// ServerError is why our server gave no complete answer.
type ServerError struct{ Reason *client.Fault }

func (e *ServerError) Error() string { return e.Reason.Error() }
func (e *ServerError) Unwrap() error { return e.Reason }

// Fault: see package fault.
func (e *ServerError) Fault() fault.Fault {
	switch status := e.status(); {
	case status == 0:
		return fault.Fault{Class: fault.NotReady, Step: fault.StartOrReadLog}
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return fault.Fault{Class: fault.NotReady, Step: fault.ReadOurLog}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.Fault{Class: fault.Auth, Step: fault.ReadOurLog}
	case status < http.StatusInternalServerError:
		return fault.Fault{Class: fault.Usage, Step: fault.AskLess} // the question is wrong for this server
	}
	return fault.Fault{Class: fault.Internal, Step: fault.ReadOurLog}
}

// status is HTTP's; 0 where the server gave none.
func (e *ServerError) status() int {
	switch e.Reason.Kind {
	case client.Refused:
		return e.Reason.Status
	case client.BrokeOff:
		return http.StatusInternalServerError
	}
	return 0
}

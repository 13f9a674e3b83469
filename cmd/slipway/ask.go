package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/installer/launch"
	"slipway/termtext"
)

// serverError is why our server gave no whole answer.
type serverError struct{ *client.Fault }

// status is HTTP's; 0 where the server did not answer as it should.
func (e serverError) status() int {
	switch e.Kind {
	case client.Refused:
		return e.Status
	case client.BrokeOff:
		return http.StatusInternalServerError
	}
	return 0
}

func (e serverError) code() int {
	switch status := e.status(); {
	case status == 0 || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return exitNotReady
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return exitAuth
	case status < http.StatusInternalServerError:
		return exitUsage // the question is wrong for this server: too long, above all
	}
	return exitInternal
}

func (e serverError) then() string {
	if e.status() == 0 {
		return "Start it with slipway up, or look at slipway logs."
	}
	if e.code() == exitUsage {
		return "Ask something that it takes: shorter, or with a smaller --max-tokens."
	}
	return "Look at slipway logs."
}

func askVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "ask", Usage: "ask the running server once and stream the answer", ArgsUsage: "QUESTION",
		Flags: []cli.Flag{homeFlag(), &cli.IntFlag{Name: "max-tokens", Value: 512, Usage: "longest answer, in tokens"}},
		Action: func(c *cli.Context) error {
			question := strings.TrimSpace(strings.Join(c.Args().Slice(), " "))
			if question == "" {
				return usage("ask needs a question")
			}
			if n := c.Int("max-tokens"); n < 1 {
				return usage(fmt.Sprintf("--max-tokens is %d, and must be at least 1", n))
			}
			set, err := s.operator(c).Running(s.ctx)
			if err != nil {
				return err
			}
			return answerQuestion(s, c, set, question)
		},
	}
}

// askAnswer is the data of ask.
type askAnswer struct {
	Model    string `json:"model"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

func answerQuestion(s *session, c *cli.Context, set launch.Settings, question string) error {
	var stream func(string)
	if !s.json {
		stream = func(piece string) { fmt.Fprint(s.out, termtext.Text(piece)) }
	}
	text, err := askServer(s.ctx, set.Port, set.ModelID, question, c.Int("max-tokens"), stream)
	if err != nil {
		return err
	}
	return s.result(exitOK, askAnswer{set.ModelID, question, text}, func(w io.Writer) { fmt.Fprintln(w) })
}

// askServer puts one question, greedily, and returns the whole answer; stream, if not nil, gets the pieces as they
// come.
func askServer(ctx context.Context, port int, model, question string, maxTokens int, stream func(string)) (string,
	error) {
	server, err := client.New(launch.URL(port), model, "")
	if err != nil {
		return "", err
	}
	reply, err := server.Chat(ctx, client.Request{
		Messages:  []client.Message{client.Say("system", "You are a helpful assistant."), client.Say("user", question)},
		MaxTokens: maxTokens,
		OnPiece: func(piece string, reasoning bool) {
			if stream != nil && !reasoning {
				stream(piece)
			}
		},
	})
	if fault, ok := errors.AsType[*client.Fault](err); ok {
		return "", serverError{fault}
	}
	if err != nil {
		return "", err
	}
	return reply.Text, nil
}

func reasonOf(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

func quoted(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "(nothing)"
	}
	return termtext.Text(s)
}

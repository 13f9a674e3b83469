package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer/launch"
)

// firstQuestion is what setup asks a new server, to show that it answers.
const firstQuestion = "Hello"

// serverError is what our server answered instead of a reply, or that it did not answer.
type serverError struct {
	status int // 0: no answer
	text   string
}

func (e *serverError) Error() string {
	if e.status == 0 {
		return "the server does not answer: " + e.text
	}
	return fmt.Sprintf("the server refused (status %d): %s", e.status, e.text)
}

func (e *serverError) code() int {
	if e.status == 0 || e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests {
		return exitNotReady
	}
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		return exitAuth
	}
	if e.status < http.StatusInternalServerError {
		return exitUsage // the question is wrong for this server: too long, above all
	}
	return exitInternal
}

func (e *serverError) then() string {
	if e.status == 0 {
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
		stream = func(piece string) { fmt.Fprint(s.out, printableText(piece)) }
	}
	text, err := askServer(s.ctx, set.Port, set.ModelID, question, c.Int("max-tokens"), stream)
	if err != nil {
		return err
	}
	return s.result(exitOK, askAnswer{set.ModelID, question, text}, func(w io.Writer) { fmt.Fprintln(w) })
}

// askServer puts one question, greedily, and returns the whole answer; stream, if not nil, gets the pieces as they come.
func askServer(ctx context.Context, port int, model, question string, maxTokens int, stream func(string)) (string, error) {
	body, err := json.Marshal(map[string]any{"model": model, "stream": true, "temperature": 0, "max_tokens": maxTokens,
		"chat_template_kwargs": map[string]any{"enable_thinking": false},
		"messages":             []map[string]string{{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": question}}})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, launch.URL(port)+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", &serverError{text: reasonOf(err)}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return "", &serverError{response.StatusCode, launch.Printable(refusal(said))}
	}
	return readStream(ctx, response.Body, stream)
}

// refusal is the message of an OpenAI error document, or the whole text where it is something else.
func refusal(body []byte) string {
	var document struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &document) == nil && document.Error.Message != "" {
		return document.Error.Message
	}
	return strings.TrimSpace(string(body))
}

// readStream reads server-sent events: "data: {...}" lines, the last one "data: [DONE]".
func readStream(ctx context.Context, body io.Reader, stream func(string)) (string, error) {
	var answer strings.Builder
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		if data = strings.TrimSpace(data); data == "[DONE]" {
			return answer.String(), nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return "", &serverError{text: "an event that is no JSON"}
		}
		if chunk.Error != nil {
			return "", &serverError{http.StatusInternalServerError, launch.Printable(chunk.Error.Message)}
		}
		for _, choice := range chunk.Choices {
			answer.WriteString(choice.Delta.Content)
			if stream != nil && choice.Delta.Content != "" {
				stream(choice.Delta.Content)
			}
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := lines.Err(); err != nil {
		return "", &serverError{text: reasonOf(err)}
	}
	return "", &serverError{text: "the stream ended before it said so"}
}

func reasonOf(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// printableText keeps line breaks and tabs; other control characters must not reach a terminal.
func printableText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = launch.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

func quoted(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return "(nothing)"
	}
	return printableText(s)
}

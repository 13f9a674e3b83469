package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/suite"
	"slipway/fault"
	"slipway/installer/operate"
)

// maxMeasuredBytes is more than any window takes.
const maxMeasuredBytes = 64 << 20

func measureVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "measure", Usage: "time one request to a server and say whose each number is",
		Flags: append(judgedFlags(),
			&cli.StringFlag{Name: "file", Usage: "text to send as the prompt; - is standard input; left out: a " +
				"text of ours"},
			&cli.BoolFlag{Name: "fresh", Usage: "begin with a random word, so that nothing can come from a cache"},
			&cli.IntFlag{Name: "max-tokens", Value: 128, Usage: "longest answer, in tokens"},
			&cli.IntFlag{Name: "repeat", Value: 1, Usage: "how many times"},
			&cli.BoolFlag{Name: "show-answer", Usage: "print the answer too"},
			&cli.BoolFlag{Name: "thinking", Usage: "let the model think first"},
			&cli.BoolFlag{Name: "draft-sweep", Usage: "compare numbers of tokens drafted at a time; --repeat is the " +
				"number of rounds"},
			&cli.BoolFlag{Name: "keep", Usage: "with --draft-sweep: use the best number now, also " +
				"after a restart"},
		),
		Action: func(c *cli.Context) error {
			if c.Bool("draft-sweep") {
				return s.draftSweep(c)
			}
			if c.Bool("keep") {
				return usage("--keep goes with --draft-sweep")
			}
			name, text, err := s.measuredFile(c.String("file"))
			if err != nil {
				return err
			}
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			answer, err := s.operator(c).Measure(s.ctx, operate.MeasureInput{Server: server,
				MeasureInput: suite.MeasureInput{Name: name, Text: text, Fresh: c.Bool("fresh"),
					MaxTokens: c.Int("max-tokens"), Repeat: c.Int("repeat"), Thinking: c.Bool("thinking"),
					ShowAnswer: c.Bool("show-answer"), Stage: s.measureStage}})
			if errors.As(err, new(*client.Fault)) {
				f := explain(err)
				f.Details = answer
				return f
			}
			return s.answer(answer, err, func(w io.Writer) { printMeasure(w, answer) })
		},
	}
}

// measuredFile reads the prompt; none gives "". Its name is the file's own, without the folders above it.
func (s *session) measuredFile(path string) (name, text string, err error) {
	if path == "" {
		return "", "", nil
	}
	name = "standard input"
	if path != "-" {
		name = filepath.Base(path)
	}
	raw, err := s.read(func() ([]byte, error) {
		from := os.Stdin
		if path != "-" {
			file, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			defer file.Close()
			from = file
		}
		return io.ReadAll(io.LimitReader(from, maxMeasuredBytes+1))
	})
	switch {
	case err != nil:
		return "", "", usage("--file " + path + ": " + fault.Innermost(err))
	case len(raw) > maxMeasuredBytes:
		return "", "", usage("--file " + path + ": it has more than 64 MiB")
	case !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0:
		return "", "", usage("--file " + path + ": it is no text in UTF-8")
	case len(bytes.TrimSpace(raw)) == 0:
		return "", "", usage("--file " + path + ": it is empty")
	}
	return name, string(raw), nil
}

package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"slipway/checks/client"
	"slipway/checks/filler"
	"slipway/checks/measure"
)

// measureAnswer is the data of measure.
type measureAnswer struct {
	Text   measuredText   `json:"text"`
	Result measure.Result `json:"result"`
}

// measuredText names what was sent. It is not repeated.
type measuredText struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// maxMeasuredBytes is more than any window takes.
const maxMeasuredBytes = 64 << 20

func measureVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "measure", Usage: "time one request to a server and say whose each number is",
		Flags: append(judgedFlags(),
			&cli.StringFlag{Name: "file", Usage: "text to send as the prompt; - is standard input; left out: a text of ours"},
			&cli.BoolFlag{Name: "fresh", Usage: "begin with a random word, so that nothing can come from a cache"},
			&cli.IntFlag{Name: "max-tokens", Value: 128, Usage: "longest answer, in tokens"},
			&cli.IntFlag{Name: "repeat", Value: 1, Usage: "how many times"},
			&cli.BoolFlag{Name: "show-answer", Usage: "print the answer too"},
			&cli.BoolFlag{Name: "thinking", Usage: "let the model think first"},
		),
		Action: func(c *cli.Context) error {
			for _, name := range []string{"max-tokens", "repeat"} {
				if n := c.Int(name); n < 1 || n > 100000 {
					return usage(fmt.Sprintf("--%s is %d, and must be 1 to 100000", name, n))
				}
			}
			name, text, err := measuredFile(c.String("file"))
			if err != nil {
				return err
			}
			server, err := s.judged(c)
			if err != nil {
				return err
			}
			sum := sha256.Sum256([]byte(text))
			answer := measureAnswer{Text: measuredText{name, len(text), hex.EncodeToString(sum[:])}}
			answer.Result, err = measure.Do(s.ctx, server, measure.Options{Text: text, Fresh: c.Bool("fresh"), Nonce: randomWord, MaxTokens: c.Int("max-tokens"),
				Repeat: c.Int("repeat"), Thinking: c.Bool("thinking"), Stage: s.measureStage})
			if !c.Bool("show-answer") {
				for i := range answer.Result.Runs {
					answer.Result.Runs[i].Answer, answer.Result.Runs[i].Thinking = "", ""
				}
			}
			if err != nil {
				f := explain(err)
				if _, mine := errors.AsType[*client.Fault](err); mine {
					f.details = answer
				}
				return f
			}
			code := exitOK
			for _, r := range answer.Result.Runs {
				if len(r.Doubts) > 0 {
					code = exitCheckFailed
				}
			}
			return s.result(code, answer, func(w io.Writer) { printMeasure(w, answer) })
		},
	}
}

// measuredFile reads the prompt. Its name is the file's own, without the folders above it.
func measuredFile(path string) (name, text string, err error) {
	if path == "" {
		return "built-in text", filler.Text(60) + "\n\nRepeat the text above from its beginning, word for word.", nil
	}
	var from io.Reader = os.Stdin
	name = "standard input"
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", "", usage("--file " + path + ": " + reasonOf(err))
		}
		defer file.Close()
		from, name = file, filepath.Base(path)
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxMeasuredBytes+1))
	switch {
	case err != nil:
		return "", "", usage("--file " + path + ": " + reasonOf(err))
	case len(raw) > maxMeasuredBytes:
		return "", "", usage("--file " + path + ": it has more than 64 MiB")
	case !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0:
		return "", "", usage("--file " + path + ": it is no text in UTF-8")
	case len(bytes.TrimSpace(raw)) == 0:
		return "", "", usage("--file " + path + ": it is empty")
	}
	return name, string(raw), nil
}

// randomWord is 16 letters that no earlier prompt began with.
func randomWord() string {
	var raw [16]byte
	rand.Read(raw[:])
	for i := range raw {
		raw[i] = 'a' + raw[i]%26
	}
	return string(raw[:])
}

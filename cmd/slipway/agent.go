package main

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

//go:embed agent/*.md
var agentTexts embed.FS

// agentAnswer is the data of agent prompt.
type agentAnswer struct {
	Language string `json:"language"`
	Text     string `json:"text"`
}

func agentVerb(s *session) *cli.Command {
	return &cli.Command{Name: "agent", Usage: "for AI assistants that set slipway up for a person", Subcommands: []*cli.Command{{
		Name: "prompt", Usage: "print the text that a person hands to an assistant",
		Flags: []cli.Flag{&cli.StringFlag{Name: "lang", Value: "en", Usage: "en or ru"}},
		Action: func(c *cli.Context) error {
			lang := c.String("lang")
			if lang != "en" && lang != "ru" {
				return usage(fmt.Sprintf("--lang is %q, and there are en and ru", lang))
			}
			raw, err := agentTexts.ReadFile("agent/prompt." + lang + ".md")
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(string(raw), "{{SLIPWAY}}", shellWords(s.invocation))
			return s.result(exitOK, agentAnswer{lang, text}, func(w io.Writer) { fmt.Fprint(w, text) })
		},
	}}}
}

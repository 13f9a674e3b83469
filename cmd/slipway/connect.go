package main

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/launch"
)

// The settings of each client are text files with {{API}}, {{MODEL}}, {{WINDOW}} and {{KEY}} to fill in. They are
// printed, never written: where they go is a person's decision.
//
//go:embed connect/*.txt
var connectTexts embed.FS

// anyKey is what clients that insist on a key may send: on loopback our server asks for none.
const anyKey = "slipway-local"

// connectAnswer is the data of connect.
type connectAnswer struct {
	Client string `json:"client"`
	API    string `json:"api"`
	Model  string `json:"model"`
	Text   string `json:"text"`
}

func connectVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "connect", Usage: "print the settings for a client: " + strings.Join(clients(), ", "), ArgsUsage: "CLIENT", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 || !slices.Contains(clients(), c.Args().First()) {
				return usage(fmt.Sprintf("connect needs one client of: %s", strings.Join(clients(), ", ")))
			}
			set, err := s.settings(c.String("home"))
			port, model, window := installer.DefaultPort, "pocket", 32768
			if err == nil {
				d := set.Decisions
				port, model, window = d.Request.Port, d.Model.ID, d.Profile.WindowTokens
			} else {
				s.talk("Nothing is set up yet: these are the values of a set-up without flags.")
			}
			answer := connectAnswer{Client: c.Args().First(), API: launch.URL(port) + "/v1", Model: model}
			raw, err := connectTexts.ReadFile("connect/" + answer.Client + ".txt")
			if err != nil {
				return err
			}
			answer.Text = strings.NewReplacer("{{API}}", answer.API, "{{MODEL}}", model, "{{WINDOW}}", strconv.Itoa(window), "{{KEY}}", anyKey).Replace(string(raw))
			return s.result(exitOK, answer, func(w io.Writer) { fmt.Fprint(w, answer.Text) })
		},
	}
}

// clients are the names of the text files.
func clients() []string {
	entries, err := connectTexts.ReadDir("connect")
	if err != nil {
		panic("slipway: embedded file: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

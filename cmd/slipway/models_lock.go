package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/plan"
	"slipway/manifests"
)

// lockAnswer is the data of models lock.
type lockAnswer struct {
	Model    string             `json:"model"`
	Repo     string             `json:"repo"`
	Revision manifests.Revision `json:"revision"`
	File     string             `json:"file"` // below the home
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"`
	Proven   int                `json:"proven"` // files whose hash follows from the revision
	Told     int                `json:"told"`   // files that only the hub vouches for
	Sentence string             `json:"sentence"`
}

func modelsLockVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "derive every hash of a model from its revision, and keep the lock in the home",
		Flags: []cli.Flag{homeFlag(), &cli.StringFlag{Name: "model", Usage: "which one (slipway models list)"},
			&cli.BoolFlag{Name: "accept-told", Usage: "take the hub's word where there is no proof"},
			&cli.BoolFlag{Name: "replace", Usage: "put the new lock in the place of one in the home that names other bytes"}},
		Action: func(c *cli.Context) error {
			if c.String("model") == "" {
				return usage("models lock needs --model; slipway models list names them")
			}
			locked, err := installer.LockModel(s.ctx, installer.LockInput{Home: c.String("home"), Model: c.String("model"),
				AcceptTold: c.Bool("accept-told"), Replace: c.Bool("replace"), Tell: func(what string) { s.talk("%s", what) }}, s.place)
			if err != nil {
				return err
			}
			answer := lockAnswer{Model: c.String("model"), Repo: locked.Lock.Repo, Revision: locked.Lock.Revision, File: locked.Path,
				Files: len(locked.Lock.Files), Bytes: locked.Lock.TotalBytes(), Sentence: locked.Sentence}
			for _, f := range locked.Lock.Files {
				if f.Proof == manifests.Told {
					answer.Told++
				} else {
					answer.Proven++
				}
			}
			return s.result(exitOK, answer, func(w io.Writer) {
				fmt.Fprintf(w, "Locked %s at %s: %s, %s.\n%s\n", answer.Repo, answer.Revision, files(answer.Files), plan.Bytes(answer.Bytes), answer.Sentence)
				fmt.Fprintf(w, "Set it up: %s\n", s.printed(c, "setup", "--model", answer.Model))
			})
		},
	}
}

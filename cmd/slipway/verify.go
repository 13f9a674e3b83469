package main

import (
	"fmt"
	"io"
	"path"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/store"
	"slipway/manifests"
)

// verifyAnswer is the data of verify.
type verifyAnswer struct {
	OK     bool     `json:"ok"`
	Deep   bool     `json:"deep"`
	Files  int      `json:"files"`
	Faults []fault  `json:"faults"`
	Extra  []string `json:"extra"` // in the model's folder and not in the lock; never touched
}

type fault struct {
	Path     string `json:"path"` // below the home
	State    string `json:"state"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

func verifyVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "compare what is installed with its lock and receipt",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "deep", Usage: "hash every byte instead of looking at sizes and times"}},
		Action: func(c *cli.Context) error {
			home, err := s.openHome(c.String("home"))
			if err != nil {
				return err
			}
			defer home.Close()
			answer, err := verify(s, home, c.Bool("deep"))
			if err != nil {
				return err
			}
			code := exitOK
			if !answer.OK {
				code = exitChanges
			}
			return s.result(code, answer, func(w io.Writer) {
				for _, f := range answer.Faults {
					fmt.Fprintf(w, "%s: %s (expected %s, found %s)\n", f.Path, f.State, orNothing(f.Expected), orNothing(f.Found))
				}
				for _, name := range answer.Extra {
					fmt.Fprintf(w, "%q is not part of the model and was left alone.\n", name)
				}
				if answer.OK {
					fmt.Fprintf(w, "%d files are as they should be.\n", answer.Files)
				} else {
					fmt.Fprintln(w, "slipway setup --deep mends this.")
				}
			})
		},
	}
}

func verify(s *session, home *apply.Home, deep bool) (verifyAnswer, error) {
	answer := verifyAnswer{Deep: deep, Faults: []fault{}, Extra: []string{}}
	set, err := apply.ReadSettings(home)
	if err != nil {
		return answer, &failure{code: exitNotReady, what: "Nothing is set up here yet.", then: "Set it up: slipway setup.", next: []string{"setup"}}
	}
	m := set.Decisions.Model
	lock, err := store.LoadLock(home.Root, m.Repo, m.Revision)
	if err != nil {
		var shipped bool
		if lock, shipped = manifests.BundledLock(m.Repo, m.Revision); !shipped {
			return answer, fmt.Errorf("the lock of %s cannot be read: %w", m.ID, err)
		}
	}
	report, err := store.Verify(s.ctx, home.Root, lock, deep)
	if err != nil {
		return answer, err
	}
	answer.Files = len(report.Files) + 1
	for _, f := range report.Bad() {
		answer.Faults = append(answer.Faults, fault{path.Join(m.Folder, f.Path), string(f.State), string(f.Expected), string(f.Found)})
	}
	answer.Extra = append(answer.Extra, report.Extra...)
	if _, err := apply.EngineOf(home, set.Decisions.Engine.ID); err != nil {
		answer.Faults = append(answer.Faults, fault{Path: path.Join("engines", set.Decisions.Engine.ID), State: err.Error()})
	}
	answer.OK = len(answer.Faults) == 0
	return answer, nil
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

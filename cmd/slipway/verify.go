package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/store"
	"slipway/manifests"
)

// verifyAnswer is the data of verify.
type verifyAnswer struct {
	OK     bool         `json:"ok"`
	Deep   bool         `json:"deep"`
	Files  int          `json:"files"`
	Faults []difference `json:"faults"`
	Extra  []string     `json:"extra"` // in the model's folder and not in the lock; never touched
}

type difference struct {
	Path     string `json:"path"` // below the home; absolute where the model is used in place
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
					fmt.Fprintln(w, printableText(f.words()))
				}
				for _, name := range answer.Extra {
					fmt.Fprintf(w, "%q is not part of the model and was left alone.\n", name)
				}
				if answer.OK {
					fmt.Fprintf(w, "%s as they should be.\n", are(answer.Files))
				} else {
					fmt.Fprintln(w, "slipway setup --deep mends this.")
				}
			})
		},
	}
}

func verify(s *session, home *apply.Home, deep bool) (verifyAnswer, error) {
	answer := verifyAnswer{Deep: deep, Faults: []difference{}, Extra: []string{}}
	set, err := apply.ReadSettings(home)
	if errors.Is(err, fs.ErrNotExist) {
		err := verifyLocked(s, home, &answer)
		return answer, err
	}
	if err != nil {
		return answer, err
	}
	m := set.Decisions.Model
	lock, err := knownLock(home.Root, m.Repo, m.Revision)
	if err != nil {
		return answer, fmt.Errorf("the lock of %s cannot be read: %w", m.ID, err)
	}
	if m.InPlace != "" {
		err = answer.inPlace(s.ctx, home, lock)
	} else {
		err = answer.model(s.ctx, home, lock)
	}
	if err != nil {
		return answer, err
	}
	answer.Files++
	if _, err := apply.EngineOf(home, set.Decisions.Engine.ID); err != nil {
		answer.Faults = append(answer.Faults, difference{Path: path.Join("engines", set.Decisions.Engine.ID), State: err.Error()})
	}
	answer.OK = len(answer.Faults) == 0
	return answer, nil
}

// verifyLocked checks the models of a home in which nothing is set up yet: those that a bundle brought.
func verifyLocked(s *session, home *apply.Home, answer *verifyAnswer) error {
	locked, err := store.Locked(home.Root)
	if err != nil {
		return err
	}
	for _, r := range locked {
		if _, err := home.Root.Lstat(store.ModelDir(r.Repo, r.Revision)); err != nil {
			continue // a lock alone: nothing of it is installed
		}
		lock, err := store.LoadLock(home.Root, r.Repo, r.Revision)
		if err != nil {
			return err
		}
		if err := answer.model(s.ctx, home, lock); err != nil {
			return err
		}
	}
	if answer.Files == 0 {
		return &failure{code: exitNotReady, what: "Nothing is set up here yet.", then: "Set it up: slipway setup.", next: []string{"setup"}}
	}
	answer.OK = len(answer.Faults) == 0
	return nil
}

// model adds what a check of a model in the home found.
func (a *verifyAnswer) model(ctx context.Context, home *apply.Home, lock manifests.Lock) error {
	report, err := store.Verify(ctx, home.Root, lock, a.Deep)
	if err != nil {
		return err
	}
	a.add(report, store.ModelDir(lock.Repo, lock.Revision))
	a.Extra = append(a.Extra, report.Extra...)
	return nil
}

// inPlace adds what a check of a model that is used in place found; its paths are absolute.
func (a *verifyAnswer) inPlace(ctx context.Context, home *apply.Home, lock manifests.Lock) error {
	report, err := store.VerifyInPlace(ctx, home.Root, lock, a.Deep)
	if err != nil {
		return err
	}
	a.add(report, "")
	return nil
}

func (a *verifyAnswer) add(report store.Report, folder string) {
	a.Files += len(report.Files)
	for _, f := range report.Bad() {
		bad := difference{Path: path.Join(folder, f.Path), State: string(f.State), Expected: string(f.Expected), Found: string(f.Found)}
		if f.State == store.WrongSize {
			bad.Expected, bad.Found = fmt.Sprintf("%d bytes", f.ExpectedBytes), fmt.Sprintf("%d bytes", f.FoundBytes)
		}
		a.Faults = append(a.Faults, bad)
	}
}

// words says one fault. What was not hashed is not said to be wrong.
func (f difference) words() string {
	switch {
	case f.Found != "":
		return fmt.Sprintf("%s: %s (expected %s, found %s)", f.Path, f.State, f.Expected, f.Found)
	case f.State == string(store.Changed):
		return f.Path + ": changed since its hash was checked; whether its bytes are right, slipway verify --deep tells"
	case f.State == string(store.Unrecorded):
		return f.Path + ": there is no record that its hash was checked; slipway verify --deep tells"
	}
	return f.Path + ": " + f.State
}

func are(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return files(n) + " are"
}

package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/plan"
	"slipway/installer/store"
)

// gcAnswer is the data of gc.
type gcAnswer struct {
	DryRun  bool            `json:"dry_run"`
	Garbage []store.Garbage `json:"garbage"`
	Bytes   int64           `json:"bytes"` // of the garbage; without --dry-run: freed
}

// rememberedReceipts is how many of the newest receipts keep their models: the set-up and the one before, so that going
// back needs no download.
const rememberedReceipts = 2

func gcVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "remove models, partial files and quarantined files that nothing needs",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "dry-run", Usage: "print what would be removed and change nothing"},
			&cli.BoolFlag{Name: "yes", Usage: "remove it; without --yes nothing is removed"}},
		Action: func(c *cli.Context) error { return gc(s, c) },
	}
}

func gc(s *session, c *cli.Context) error {
	home, err := s.openHome(c.String("home"))
	if err != nil {
		return err
	}
	defer home.Close()
	if !c.Bool("dry-run") {
		lock, err := home.Lock("slipway gc")
		if err != nil {
			return err
		}
		defer lock.Release()
	}
	roots, err := modelRoots(home)
	if err != nil {
		return err
	}
	garbage, err := store.Collect(home.Root, roots)
	if err != nil {
		return err
	}
	answer := gcAnswer{DryRun: c.Bool("dry-run"), Garbage: garbage}
	for _, g := range garbage {
		answer.Bytes += g.Bytes
	}
	if answer.Garbage == nil {
		answer.Garbage = []store.Garbage{}
	}
	if !answer.DryRun && !c.Bool("yes") && len(garbage) > 0 {
		return &failure{code: exitConsent, what: fmt.Sprintf("%d files of %s are not needed.", len(garbage), plan.Bytes(answer.Bytes)),
			then: "Nothing was done. See them with slipway gc --dry-run; remove them with --yes.", next: []string{"gc", "--dry-run"}, details: answer}
	}
	if !answer.DryRun {
		if answer.Bytes, err = store.Remove(home.Root, garbage); err != nil {
			return err
		}
	}
	code := exitOK
	if answer.DryRun && len(garbage) > 0 {
		code = exitChanges
	}
	return s.result(code, answer, func(w io.Writer) {
		for _, g := range answer.Garbage {
			fmt.Fprintf(w, "%s, %s: %s\n", g.Path, plan.Bytes(g.Bytes), g.Why)
		}
		verb := "Freed"
		if answer.DryRun {
			verb = "Would free"
		}
		fmt.Fprintf(w, "%s %s.\n", verb, plan.Bytes(answer.Bytes))
	})
}

// modelRoots names the models that must stay: of the set-up, which is what a running server has open, and of the newest
// receipts.
func modelRoots(home *apply.Home) ([]store.Root, error) {
	var roots []store.Root
	if set, err := apply.ReadSettings(home); err == nil {
		m := set.Decisions.Model
		roots = append(roots, store.Root{Repo: m.Repo, Revision: m.Revision, Why: "set up"})
	}
	receipts, err := home.Receipts()
	if err != nil {
		return nil, err
	}
	for _, r := range receipts[max(0, len(receipts)-rememberedReceipts):] {
		m := r.Decisions.Model
		roots = append(roots, store.Root{Repo: m.Repo, Revision: m.Revision, Why: "receipt of " + r.Time})
	}
	return roots, nil
}

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/launch"
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
			&cli.BoolFlag{Name: "all", Usage: "also models that were locked or imported and never set up"},
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
	roots, err := modelRoots(s.ctx, home, c.Bool("all"))
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

// modelRoots names the models that must stay: of the set-up, of a running server, of a plan that was begun and not
// finished, of the newest receipts, and, unless all is asked for, those whose lock is here and which were never set up:
// somebody locked or imported them for later.
func modelRoots(ctx context.Context, home *apply.Home, all bool) ([]store.Root, error) {
	var roots []store.Root
	if set, err := apply.ReadSettings(home); err == nil {
		m := set.Decisions.Model
		roots = append(roots, store.Root{Repo: m.Repo, Revision: m.Revision, Why: "set up"})
	}
	status, err := launch.Look(ctx, home.Root, home.Path)
	if err != nil {
		return nil, err
	}
	if r, ok := store.RootOf(status.Record.Settings.ModelFolder, "a server runs it"); ok && status.Living() {
		roots = append(roots, r)
	}
	begun, err := apply.OpenPaths(home)
	if err != nil {
		return nil, err
	}
	for _, folder := range begun {
		if r, ok := store.RootOf(folder, "a plan that was begun"); ok {
			roots = append(roots, r)
		}
	}
	receipts, err := home.Receipts()
	if err != nil {
		return nil, err
	}
	wasSetUp := map[string]bool{}
	for i, r := range receipts {
		m := r.Decisions.Model
		wasSetUp[m.Folder] = true
		if i >= len(receipts)-rememberedReceipts {
			roots = append(roots, store.Root{Repo: m.Repo, Revision: m.Revision, Why: "receipt of " + r.Time})
		}
	}
	locked, err := store.Locked(home.Root)
	if err != nil {
		return nil, err
	}
	for _, r := range locked {
		if !all && !wasSetUp[store.ModelDir(r.Repo, r.Revision)] {
			roots = append(roots, r)
		}
	}
	return roots, nil
}

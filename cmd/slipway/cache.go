package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/consent"
	"slipway/installer/launch"
	"slipway/installer/plan"
)

// cacheAnswer is the data of cache show, and of cache clear: what was there before.
type cacheAnswer struct {
	Folder      string    `json:"folder"`
	BudgetBytes int64     `json:"budget_bytes"` // 0: the server that is set up keeps nothing on disk
	Points      int       `json:"points"`
	Bytes       int64     `json:"bytes"`
	Oldest      time.Time `json:"oldest,omitzero"` // point; absent without any
	Newest      time.Time `json:"newest,omitzero"`
	InUse       bool      `json:"in_use"`
	Cleared     bool      `json:"cleared"`
}

func keptVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "cache", Usage: "show or clear the conversations that are kept on disk",
		Subcommands: []*cli.Command{
			{Name: "show", Usage: "print how much is kept", Flags: []cli.Flag{homeFlag()}, Action: func(c *cli.Context) error { return showCache(s, c) }},
			{Name: "clear", Usage: "delete it; the server must be stopped", Flags: []cli.Flag{homeFlag(),
				&cli.BoolFlag{Name: "yes", Usage: "do it without a question"},
				&cli.BoolFlag{Name: "no-input", Usage: "never ask; without --yes end with exit code 5"}},
				Action: func(c *cli.Context) error { return clearCache(s, c) }},
		},
	}
}

func showCache(s *session, c *cli.Context) error {
	home, err := s.openHome(c.String("home"))
	if err != nil {
		return err
	}
	defer home.Close()
	answer, _, err := s.lookAtCache(home)
	if err != nil {
		return err
	}
	return s.result(exitOK, answer, func(w io.Writer) {
		printCache(w, answer)
		if answer.BudgetBytes > 0 {
			fmt.Fprintf(w, "At most %s are kept; --disk-cache changes that.\n", plan.Bytes(answer.BudgetBytes))
		} else {
			fmt.Fprintln(w, "The server that is set up keeps nothing on disk.")
		}
	})
}

// clearCache deletes only while no server of this home runs: the home's lock keeps one from being started meanwhile.
func clearCache(s *session, c *cli.Context) error {
	home, err := s.openHome(c.String("home"))
	if err != nil {
		return err
	}
	defer home.Close()
	lock, err := home.Lock("slipway cache clear")
	if err != nil {
		return err
	}
	defer lock.Release()
	answer, program, err := s.lookAtCache(home)
	if err != nil {
		return err
	}
	if program == "" {
		return s.result(exitOK, answer, words("Nothing is kept on disk."))
	}
	status, err := launch.Look(s.ctx, home.Root, home.Path)
	if err != nil {
		return err
	}
	if answer.InUse || status.Living() || status.Unidentified {
		return &failure{code: exitLocked, what: "The server is running and uses what is kept.", then: "Nothing was deleted. Stop it first: slipway down.",
			next: append([]string{"down"}, homeArgs(c)...)}
	}
	if !c.Bool("yes") {
		manner := s.terminal.Manner(s.json || c.Bool("no-input"))
		if manner == consent.Nobody {
			return &failure{code: exitConsent, what: "Consent is needed to delete what is kept of conversations.", then: "Nothing was deleted. Add --yes."}
		}
		printCache(printable{s.errOut}, answer)
		if err := s.agreed(manner, "Delete it?"); err != nil {
			return err
		}
	}
	if err := launch.ClearCache(s.ctx, program, answer.Folder); err != nil {
		return err
	}
	answer.Cleared = true
	return s.result(exitOK, answer, words(fmt.Sprintf("Deleted %s restore points, %s.", plan.Count(answer.Points), plan.Bytes(answer.Bytes))))
}

// lookAtCache asks the server program that is set up. The program is "" where nothing was ever kept.
func (s *session) lookAtCache(home *apply.Home) (cacheAnswer, string, error) {
	set, err := apply.ReadSettings(home)
	if errors.Is(err, fs.ErrNotExist) {
		err = apply.ErrNoHome
	}
	if err != nil {
		return cacheAnswer{}, "", err
	}
	answer := cacheAnswer{Folder: filepath.Join(home.Path, plan.CachePath), BudgetBytes: set.Decisions.Profile.CacheDiskBytes}
	if _, err := home.Root.Lstat(plan.CachePath); errors.Is(err, fs.ErrNotExist) {
		return answer, "", nil
	}
	id := set.Decisions.Engine.ID
	if _, err := apply.EngineOf(home, id); err != nil {
		return answer, "", &failure{code: exitNotReady, what: "The server program is not as it was set up, and it is what reads the folder.",
			then: "Mend it first: slipway setup.", next: []string{"setup"}}
	}
	program := filepath.Join(home.Path, filepath.FromSlash(plan.EnginePath(id)))
	held, err := launch.ShowCache(s.ctx, program, answer.Folder)
	if err != nil {
		return answer, "", err
	}
	answer.Points, answer.Bytes, answer.Oldest, answer.Newest, answer.InUse = held.Points, held.Bytes(), held.Oldest, held.Newest, held.InUse
	return answer, program, nil
}

func printCache(w io.Writer, a cacheAnswer) {
	if a.Bytes == 0 {
		fmt.Fprintf(w, "Nothing is kept on disk (%q).\n", a.Folder)
		return
	}
	fmt.Fprintf(w, "%s restore points, %s, in %q. They hold your prompts and the replies.\n", plan.Count(a.Points), plan.Bytes(a.Bytes), a.Folder)
	if a.Points > 0 {
		fmt.Fprintf(w, "The oldest is of %s, the newest of %s.\n", a.Oldest.Local().Format(time.DateTime), a.Newest.Local().Format(time.DateTime))
	}
}

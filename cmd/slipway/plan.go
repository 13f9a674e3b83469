package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/plan"
)

// planAnswer is the data of plan.
type planAnswer struct {
	File     string         `json:"file"` // empty when none was written
	Digest   string         `json:"digest"`
	Plan     plan.Plan      `json:"plan"`
	Classes  []plan.Class   `json:"consent"`
	CanApply bool           `json:"can_apply"`
	Checks   []plan.Check   `json:"checks"`
	Blockers []plan.Blocker `json:"blockers"`
	Apply    []string       `json:"apply"` // argv that does exactly this plan
}

func planVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "print the plan, or write it to a file that apply takes",
		Flags: append(choiceFlags(), &cli.StringFlag{Name: "out", Usage: "file to write the plan to; it is the only thing that is written"}),
		Action: func(c *cli.Context) error {
			in, err := inputOf(c)
			if err != nil {
				return err
			}
			s.settingsInto(&in)
			p, err := installer.Prepare(s.ctx, in, s.place)
			if err != nil {
				return err
			}
			return answerPlan(s, c, p)
		},
	}
}

func answerPlan(s *session, c *cli.Context, p installer.Prepared) error {
	answer := planAnswer{Digest: p.Plan.Digest, Plan: p.Plan, Classes: p.Plan.Classes(), CanApply: p.Standing.CanApply,
		Checks:   s.ownCommands(p.Standing.Checks),
		Blockers: s.ownBlockers(p.Standing.Blockers), Apply: []string{}}
	if out := c.String("out"); out != "" {
		file, err := filepath.Abs(out)
		if err != nil {
			return err
		}
		if err := writePlanFile(file, plan.WriteFile(p.Plan)); err != nil {
			return planFileFailure(file, err)
		}
		answer.File, answer.Apply = file, s.argv(s.again([]string{"apply", "--plan", file, "--digest", p.Plan.Digest})...)
	}
	return s.result(dryRunCode(p.Standing), answer, func(w io.Writer) {
		printProposal(w, p)
		printPlan(w, p)
		printStopped(w, p)
		printVerdict(w, p.Standing)
		if answer.File != "" {
			fmt.Fprintf(w, "Do exactly this: %s\n", shellWords(answer.Apply))
		}
	})
}

// planFileFailure is a --out that cannot be written, told by what is wrong with it.
func planFileFailure(file string, err error) error {
	f := &failure{code: exitUsage, what: fmt.Sprintf("The plan cannot be written to %q: %s.", file, reasonOf(err)), then: "Give --out another file."}
	switch info, lookErr := os.Stat(file); {
	case lookErr == nil && info.IsDir():
		f.what, f.then = fmt.Sprintf("The plan cannot be written to %q: that is a folder.", file), "Give --out the name of a file in it."
	case errors.Is(err, fs.ErrNotExist):
		f.what, f.then = fmt.Sprintf("The plan cannot be written to %q: its folder does not exist.", file), "Make the folder, or give --out another file."
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.code = exitNoSpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		f.code = exitHuman
	}
	return f
}

// writePlanFile writes through a new inode, readable by the person only: the plan names paths of this machine.
func writePlanFile(file string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/profiles"
)

// dryRunAnswer is the data of setup --dry-run and doctor. Nothing on the disk was changed.
type dryRunAnswer struct {
	Ready    bool              `json:"ready"`     // launchable now
	CanApply bool              `json:"can_apply"` // the plan has no blocker
	Digest   string            `json:"digest"`
	Actions  []actionState     `json:"actions"`
	Checks   []plan.Check      `json:"checks"`
	Blockers []plan.Blocker    `json:"blockers"`
	Proposal profiles.Proposal `json:"proposal"`
	Facts    machine.Facts     `json:"facts"`

	// ServerCan is what the server honours: certain when its probe said so, else what is assumed of this version.
	ServerCan machine.Fact[profiles.Capabilities] `json:"server_can"`
}

type actionState struct {
	plan.Action
	State plan.State `json:"state"`
}

func dryRunCode(s plan.Standing) int {
	switch {
	case !s.CanApply:
		return exitNotReady
	case s.Ready:
		return exitOK
	}
	return exitChanges
}

func answerDryRun(s *session, p installer.Prepared) error {
	answer := dryRunAnswer{Ready: p.Standing.Ready, CanApply: p.Standing.CanApply, Digest: p.Plan.Digest,
		Actions: actionStates(p), Checks: s.ownCommands(p.Standing.Checks), Blockers: s.ownBlockers(p.Standing.Blockers), Proposal: p.Proposal, Facts: p.Facts, ServerCan: p.Server}
	return s.result(dryRunCode(p.Standing), answer, func(w io.Writer) {
		printProposal(w, p)
		printPlan(w, p)
		printStopped(w, p)
		printVerdict(w, p.Standing)
	})
}

// printStopped names the servers that slipway has stopped and that are not back: whoever reads a plan has to know.
func printStopped(w io.Writer, p installer.Prepared) {
	for _, sentence := range p.Stopped {
		fmt.Fprintln(w, sentence)
	}
}

func actionStates(p installer.Prepared) []actionState {
	var all []actionState
	for _, a := range p.Plan.Actions {
		all = append(all, actionState{a, p.Standing.States[a.ID]})
	}
	return all
}

// ownCommands writes our own name in the checks' commands as it was typed.
func (s *session) ownCommands(checks []plan.Check) []plan.Check {
	for i := range checks {
		checks[i].Command = s.ownCommand(checks[i].Command)
	}
	return checks
}

func (s *session) ownBlockers(blockers []plan.Blocker) []plan.Blocker {
	for i := range blockers {
		blockers[i].Command = s.ownCommand(blockers[i].Command)
	}
	return blockers
}

func (s *session) ownCommand(command []string) []string {
	if len(command) > 1 && command[0] == "slipway" {
		return s.argv(s.again(command[1:])...)
	}
	return command
}

func printVerdict(w io.Writer, st plan.Standing) {
	for _, b := range st.Blockers {
		fmt.Fprintf(w, "In the way: %s\n  %s\n", b.Sentence, b.Fix)
	}
	switch {
	case !st.CanApply:
		fmt.Fprintln(w, "Not ready, and the plan cannot be applied as things are.")
	case st.Ready:
		fmt.Fprintln(w, "Ready: the server can be started now.")
	default:
		fmt.Fprintln(w, "Not ready yet; nothing is in the way of the plan. Nothing was changed.")
	}
}

func doctorVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "check machine, home and server; change nothing",
		Flags: choiceFlags(),
		Action: func(c *cli.Context) error {
			in, err := inputOf(c)
			if err != nil {
				return err
			}
			// What is set up is what is examined, unless something else was asked for.
			s.settingsInto(&in)
			in.KeepEngine = !c.IsSet("source")
			p, err := installer.Prepare(s.ctx, in, s.place)
			if err != nil {
				return err
			}
			answer := dryRunAnswer{Ready: p.Standing.Ready, CanApply: p.Standing.CanApply, Digest: p.Plan.Digest, Actions: actionStates(p),
				Checks: s.ownCommands(p.Standing.Checks), Blockers: s.ownBlockers(p.Standing.Blockers), Proposal: p.Proposal, Facts: p.Facts, ServerCan: p.Server}
			return s.result(dryRunCode(p.Standing), answer, func(w io.Writer) {
				for _, line := range append(factLines(p.Facts), serverLine(p.Server)) {
					fmt.Fprintln(w, line)
				}
				fmt.Fprintln(w)
				for _, check := range p.Standing.Checks {
					fmt.Fprintf(w, "%-8s %-9s %s\n", check.Status, check.ID, check.Observed)
					if (check.Status == "fail" || check.Status == "warn") && check.Fix != "" {
						fmt.Fprintf(w, "%18s %s\n", "", check.Fix)
					}
				}
				printVerdict(w, p.Standing)
			})
		},
	}
}

// recorded is the request that is set up: of the settings, and where those are damaged of the newest receipt.
func (s *session) recorded(path string) (plan.Request, bool) {
	home, err := s.openHome(path)
	if err != nil {
		return plan.Request{}, false
	}
	defer home.Close()
	set, err := apply.ReadSettings(home)
	if err == nil {
		return set.Decisions.Request, true
	}
	if errors.Is(err, fs.ErrNotExist) {
		return plan.Request{}, false
	}
	receipts, err := home.Receipts()
	if err != nil {
		return plan.Request{}, false
	}
	for _, receipt := range slices.Backward(receipts) {
		if receipt.Complete {
			return receipt.Decisions.Request, true
		}
	}
	return plan.Request{}, false
}

// settingsInto fills what was left out with what is set up.
func (s *session) settingsInto(in *installer.Input) {
	r, ok := s.recorded(in.Home)
	if ok {
		in.FillFrom(r)
	}
}

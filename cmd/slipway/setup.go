package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/consent"
	"slipway/installer/plan"
)

func setupVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "setup", Usage: "look, plan, in, fetch, verify, build, launch, answer",
		Flags: append(choiceFlags(),
			&cli.BoolFlag{Name: "yes", Usage: "allow downloading, writing in the home, building and launching without a question"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without consent end with exit code 5"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be done and change nothing"},
			&cli.BoolFlag{Name: "deep", Usage: "hash every byte of what is installed instead of looking at sizes and times"},
			&cli.BoolFlag{Name: "set-aside-journal", Usage: "move a damaged journal out of the way first"},
			eventsFlag()),
		Action: func(c *cli.Context) error { return setup(s, c) },
	}
}

// setup is the main line: facts, plan, consent, actions, receipt, answer.
func setup(s *session, c *cli.Context) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	in.Deep = c.Bool("deep")
	s.settingsInto(&in) // what is set up stays as it is, unless a flag says otherwise
	if c.Bool("set-aside-journal") {
		if err := setAsideJournal(s, in.Home); err != nil {
			return err
		}
	}
	if !c.Bool("dry-run") {
		s.restoreLeftBehind(in)
	}
	prepared, err := installer.Prepare(s.ctx, in, s.place)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return answerDryRun(s, prepared)
	}
	if !prepared.Standing.CanApply {
		return blocked(prepared.Standing)
	}
	if prepared.Standing.PendingCount() == 0 && prepared.Recorded && !prepared.Open {
		return nothingToDo(s, c, prepared)
	}
	s.showProposal(prepared)
	if err := s.consentTo(c, prepared); err != nil {
		return err
	}
	old := s.whatServes(in.Home)
	done, err := s.apply(prepared)
	if err != nil {
		return s.rollBack(c, prepared, old, err, append([]string{"setup"}, choiceArgs(c)...))
	}
	return finishSetup(s, c, prepared, done)
}

// consentTo makes sure that every pending action is allowed, by flags, by an earlier consent to this very plan, or by
// asking once.
func (s *session) consentTo(c *cli.Context, p installer.Prepared) error {
	if p.Open { // agreed to when it was begun
		return nil
	}
	grants := consent.Of()
	if c.Bool("yes") {
		grants = consent.Yes()
	}
	if len(c.StringSlice("allow-stop")) > 0 {
		grants = grants.With(plan.Stop) // a plan stops only the kinds that were named
	}
	if c.Bool("accept-told") {
		grants = grants.With(plan.Told)
	}
	err := grants.Check(p.Plan, p.Standing)
	if err == nil {
		return nil
	}
	manner := s.terminal.Manner(s.json || s.events || c.Bool("no-input"))
	if manner == consent.Nobody || c.Bool("yes") {
		return &failure{code: exitConsent, what: sentence(err.Error()),
			then: "Nothing was done. Show the plan to the person, then add " + missingFlags(err) + ", or apply the plan by its digest.",
			next: append([]string{"plan"}, choiceArgs(c)...), details: p.Plan}
	}
	return s.agreed(manner, "Do this?")
}

// agreed puts the question; anything but a yes ends the command with nothing done.
func (s *session) agreed(manner consent.Manner, question string) error {
	yes, err := s.terminal.Ask(s.ctx, manner, question)
	if err != nil {
		f := explain(err)
		f.then = "Nothing was done."
		return f
	}
	if !yes {
		return &failure{code: exitConsent, what: "The answer was no.", then: "Nothing was done."}
	}
	return nil
}

// missingFlags names the flags that give what was not granted.
func missingFlags(err error) string {
	var needed *consent.NeededError
	if !errors.As(err, &needed) {
		return "--yes"
	}
	var flags []string
	for _, class := range needed.Classes {
		flag := "--yes"
		switch class {
		case plan.Told:
			flag = "--accept-told"
		case plan.Stop:
			flag = "--allow-stop"
		}
		if !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return strings.Join(flags, " and ")
}

// apply carries the plan out with progress.
func (s *session) apply(p installer.Prepared) (apply.Result, error) {
	stayAwake()
	s.model = p.Plan.Decisions.Model.ID
	progress := s.newProgress()
	defer progress.end()
	return apply.Run(s.ctx, p.Plan, p.Workers, apply.Options{UserHome: s.place.UserHome, Command: "slipway " + s.verb,
		Version: version, Report: progress.report, Now: time.Now})
}

// stopped adds the command that goes on to an error that left a plan open.
func (s *session) stopped(err error, again []string) error {
	f := explain(err)
	if fault.Class(f.code).Stopped() {
		f.then, f.next = "What arrived is kept. The same command goes on and asks nothing again.", again
	}
	return f
}

func setAsideJournal(s *session, path string) error {
	home, err := s.openHome(path)
	if err != nil {
		return err
	}
	defer home.Close()
	if _, err := apply.OpenDigest(home); err == nil {
		s.talk("The journal is not damaged; it stays where it is.")
		return nil
	}
	name, err := apply.SetAsideJournal(home)
	if err == nil {
		s.talk("The damaged journal is %s now.", name)
	}
	return err
}

func (s *session) openHome(path string) (*apply.Home, error) {
	resolved, err := apply.ResolveHome(path, s.place.UserHome)
	if err != nil {
		return nil, err
	}
	return apply.OpenHome(resolved, s.place.UserHome)
}

// setupAnswer is the data of setup, apply and up.
type setupAnswer struct {
	Digest    string           `json:"digest"`
	Changed   int              `json:"changed"`
	Continued bool             `json:"continued"`
	Home      string           `json:"home"`
	Model     string           `json:"model"`
	Profile   string           `json:"profile"`
	Server    *serverAddresses `json:"server"` // null without a launch
	Question  string           `json:"question"`
	Answer    string           `json:"answer"`
	Receipt   string           `json:"receipt"`
	Stop      []string         `json:"stop"`
}

type serverAddresses struct {
	API    string `json:"api"`
	Health string `json:"health"`

	Monitor string `json:"monitor"` // the page
}

func nothingToDo(s *session, c *cli.Context, p installer.Prepared) error {
	s.talk("Everything is set up already; nothing was changed.")
	return finishSetup(s, c, p, apply.Result{})
}

// finishSetup asks the model one question and prints answer, addresses, and how to stop.
func finishSetup(s *session, c *cli.Context, p installer.Prepared, done apply.Result) error {
	d := p.Plan.Decisions
	answer := setupAnswer{Digest: p.Plan.Digest, Changed: done.Changed, Continued: done.Continued, Home: d.Home,
		Model: d.Model.ID, Profile: d.Profile.Name, Receipt: apply.ReceiptPath(p.Plan.Digest), Stop: s.argv(append([]string{"down"}, homeArgs(c)...)...)}
	if !d.Request.Launch {
		return s.result(exitOK, answer, words(fmt.Sprintf("Set up in %s. Start the server with: %s", d.Home, s.printed(c, "up"))))
	}
	answer.Server = addresses(d.Request.Port, d.Request.MonitorPort)
	answer.Question = firstQuestion
	ctx, cancel := context.WithTimeout(s.ctx, firstAnswerLimit)
	defer cancel()
	text, err := askServer(ctx, d.Request.Port, d.Model.ID, firstQuestion, 48, nil)
	if err != nil {
		return err
	}
	answer.Answer = text
	return s.result(exitOK, answer, func(w io.Writer) {
		fmt.Fprintf(w, "\nAsked: %s\nIt says: %s\n\n", firstQuestion, quoted(text))
		fmt.Fprintf(w, "API:   %s (OpenAI form)\n", answer.Server.API)
		fmt.Fprintf(w, "Watch: %s\n", answer.Server.Monitor)
		fmt.Fprintf(w, "Ask:   %s\n", shellWords(s.argv(append(append([]string{"ask"}, homeArgs(c)...), "...")...)))
		fmt.Fprintf(w, "Stop:  %s\n", shellWords(answer.Stop))
		for _, q := range p.Manifest.Quirks {
			fmt.Fprintf(w, "Note:  %s\n", q.Text)
		}
	})
}

// firstAnswerLimit is how long the first short answer may take: ten minutes, far more than a cold 27B model needs.
const firstAnswerLimit = 10 * time.Minute

func shortDigest(digest string) string {
	if len(digest) > 19 {
		return digest[:19]
	}
	return digest
}

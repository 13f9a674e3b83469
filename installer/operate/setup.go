package operate

import (
	"context"
	"slices"
	"time"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/consent"
	"slipway/installer/plan"
)

// SetupInput is the input of Setup. Input.Home is the operator's.
type SetupInput struct {
	installer.Input
	// allow downloading, writing, building and launching without a question
	Yes bool `json:"yes"`
	// allow unproven files now: what is set up may have allowed them before
	GrantUnproven   bool `json:"grant_told"`
	SetAsideJournal bool `json:"set_aside_journal"` // move a damaged journal away first
}

// SetupAnswer is the answer of Setup, Apply, Up and Upgrade.
type SetupAnswer struct {
	Digest    string     `json:"digest"`
	Changed   int        `json:"changed"`
	Continued bool       `json:"continued"`
	Home      string     `json:"home"`
	Model     string     `json:"model"`
	Profile   string     `json:"profile"`
	Server    *Addresses `json:"server"` // null without a launch
	Question  string     `json:"question"`
	Answer    string     `json:"answer"`
	Speed     *Speed     `json:"speed"` // of that answer; null where it was too short, or a toy's
	Receipt   string     `json:"receipt"`
	Stop      []string   `json:"stop"`
	// Draft is what was measured of the server's draft; null where it has none, or it was not measured.
	Draft *MeasuredDraft `json:"draft"`
	Notes []string       `json:"-"` // what the model's manifest says of its quirks
}

// firstQuestion is put to a new server, to show that it answers.
const firstQuestion = "Hello"

// firstAnswerTokens bounds the first answer, and firstAnswerLimit its time: far more than a cold 27B model needs.
const (
	firstAnswerTokens = 48
	firstAnswerLimit  = 10 * time.Minute
)

// Setup is the main line: facts, plan, consent, actions, receipt, answer.
func (o *Operator) Setup(ctx context.Context, in SetupInput) (SetupAnswer, error) {
	o.fillFromSetUp(&in.Input)
	if err := in.Check(); err != nil {
		return SetupAnswer{}, err
	}
	if in.SetAsideJournal {
		if err := o.SetAsideJournal(); err != nil {
			return SetupAnswer{}, err
		}
	}
	o.restoreLeftBehind(ctx, in.AllowStop)
	prepared, err := o.prepare(ctx, in.Input)
	if err != nil {
		return SetupAnswer{}, err
	}
	if !prepared.Assessment.CanApply {
		return SetupAnswer{}, o.blocked(prepared.Assessment)
	}
	if settled(prepared) {
		return o.nothingToDo(ctx, prepared)
	}
	if err := prepared.HubProblem(); err != nil {
		return SetupAnswer{}, err
	}
	o.Caller.ShowPlan(prepared)
	if err := prepared.TooLarge(in.MaxDownloadBytes); err != nil {
		return SetupAnswer{}, err
	}
	if err := o.consentTo(ctx, in, prepared); err != nil {
		return SetupAnswer{}, err
	}
	done, err := o.applyOrRollBack(ctx, prepared)
	if err != nil {
		return SetupAnswer{}, err
	}
	return o.finish(ctx, prepared, done)
}

func (o *Operator) prepare(ctx context.Context, in installer.Input) (installer.Prepared, error) {
	in.Home = o.Home
	var p installer.Prepared
	err := o.during("Looking at this machine", func() (err error) {
		p, err = installer.Prepare(ctx, in, o.Environment)
		return err
	})
	if err == nil {
		o.planned = &p.Plan.Decisions.Model
	}
	return p, err
}

// during carries out work that reports nothing, and says what is waited for.
func (o *Operator) during(what string, work func() error) error {
	return apply.Pulse(o.Caller.Report, apply.Event{Text: what}, func(func(apply.Event)) error { return work() })
}

// settled reports whether a plan is carried out already.
func settled(p installer.Prepared) bool {
	return p.Assessment.PendingCount() == 0 && p.Recorded && !p.Open
}

// ConsentError names what a plan needs and what was not allowed.
type ConsentError struct {
	Needed *consent.NeededError
	Plan   plan.Plan
}

func (e *ConsentError) Error() string { return e.Needed.Error() }

func (e *ConsentError) Unwrap() error { return e.Needed }

// Details is the plan.
func (e *ConsentError) Details() any { return e.Plan }

// Fault: see package fault.
func (e *ConsentError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Consent, Step: fault.ShowPlan}
}

// consentTo makes sure that every pending action is allowed: by the input, by an earlier consent to this very plan, or
// by asking once.
func (o *Operator) consentTo(ctx context.Context, in SetupInput, p installer.Prepared) error {
	if p.Open { // agreed to when it was begun
		return nil
	}
	grants := consent.Of()
	if in.Yes {
		grants = consent.Yes()
	}
	if in.AllowStop != "" {
		grants = grants.With(plan.Stop) // a plan stops only the kinds that were named
	}
	if in.GrantUnproven || p.ListKnown && p.Unproven == 0 {
		grants = grants.With(plan.Unproven)
	}
	err := grants.Check(p.Plan, p.Assessment)
	if p.Unproven > 0 && p.Plan.Decisions.Model.ProvenOnly {
		err = &consent.NeededError{Classes: []plan.Class{plan.Unproven}}
	}
	needed, ok := err.(*consent.NeededError)
	if !ok {
		return err
	}
	refused := &ConsentError{needed, p.Plan}
	if in.Yes { // what --yes does not cover is never asked for
		return refused
	}
	return o.agreed(ctx, Question{Plan: &p}, refused)
}

// agreed asks; without a yes nothing may be done. notAsked is the error where nothing can be asked.
func (o *Operator) agreed(ctx context.Context, q Question, notAsked error) error {
	reply, err := o.Caller.Agree(ctx, q)
	switch {
	case err != nil:
		f, _ := fault.Of(err)
		return &Error{Text: err.Error(), Of: fault.Fault{Class: f.Class, Step: fault.NothingDone}}
	case reply == Yes:
		return nil
	case reply == No:
		return ErrDeclined
	}
	return notAsked
}

// BlockedError says what keeps a plan from being applied.
type BlockedError struct {
	Blockers []plan.Blocker // commands begin with our name
	Class    fault.Class

	own []plan.Blocker // with the commands as the caller starts them
}

func (e *BlockedError) Error() string { return e.Blockers[0].Sentence }

// Details are all blockers.
func (e *BlockedError) Details() any { return e.own }

// Fault gives the first blocker's class. Its own sentences say what to do.
func (e *BlockedError) Fault() fault.Fault {
	return fault.Fault{Class: e.Class, Step: fault.AsTheTextSays}
}

func (o *Operator) blocked(s plan.Assessment) *BlockedError {
	return &BlockedError{s.Blockers, s.Blockers[0].Kind.Class(), o.ownBlockers(slices.Clone(s.Blockers))}
}

// run carries the plan out with progress.
func (o *Operator) run(ctx context.Context, p installer.Prepared) (apply.Result, error) {
	stayAwake()
	o.Model = p.Plan.Decisions.Model.ID
	return apply.Run(ctx, p.Plan, p.Workers, o.options())
}

func (o *Operator) options() apply.Options {
	opt := apply.Options{UserHome: o.Environment.UserHome, Command: "slipway " + o.Verb, Version: o.Version,
		Report: o.Caller.Report, Now: time.Now}
	if o.Continue != nil {
		opt.Continue = o.Continue()
	}
	return opt
}

func (o *Operator) nothingToDo(ctx context.Context, p installer.Prepared) (SetupAnswer, error) {
	o.Caller.Say("Everything is set up already; nothing was changed.")
	return o.finish(ctx, p, apply.Result{})
}

// finish asks the model one question, where a server was started.
func (o *Operator) finish(ctx context.Context, p installer.Prepared, done apply.Result) (SetupAnswer, error) {
	d := p.Plan.Decisions
	answer := o.setupAnswer(p, done)
	if !d.Request.Launch {
		answer.Server = nil
		return answer, nil
	}
	if done.Changed > 0 { // who sets up again has read them
		for _, q := range p.Manifest.Quirks {
			answer.Notes = append(answer.Notes, q.Text)
		}
	}
	answer.Question = firstQuestion
	ctx, cancel := context.WithTimeout(ctx, firstAnswerLimit)
	defer cancel()
	first := AskInput{Question: firstQuestion, MaxTokens: firstAnswerTokens}
	err := o.during("Waiting for the first answer", func() error {
		reply, err := askOnce(ctx, d.Request.Port, d.Model.ID, first)
		if err == nil {
			answer.Answer = reply.Text
			if !p.Manifest.Embedded { // how fast a toy is says nothing
				answer.Speed = speedOf(reply, p.TokensPerSecond)
			}
		}
		return err
	})
	if err != nil {
		return answer, err
	}
	o.keepAnswer(FirstAnswer{p.Plan.Digest, d.Model.ID, answer.Question, answer.Answer, answer.Speed})
	err = o.during("Measuring the draft", func() (err error) {
		answer.Draft, err = o.measureDraft(ctx)
		return err
	})
	if err != nil && context.Cause(ctx) == nil { // it answers: that is what was asked for
		o.Caller.Say("The draft was not measured: " + err.Error() + ".")
		err = nil
	}
	return answer, err
}

func (o *Operator) setupAnswer(p installer.Prepared, done apply.Result) SetupAnswer {
	d := p.Plan.Decisions
	return SetupAnswer{Digest: p.Plan.Digest, Changed: done.Changed, Continued: done.Continued, Home: d.Home,
		Model:   d.Model.ID,
		Profile: d.Profile.Name, Server: addressesOf(d.Request.Port, d.Request.MonitorPort),
		Receipt: apply.ReceiptPath(p.Plan.Digest), Stop: o.Caller.Command("down")}
}

// SetAsideJournal moves a damaged journal away. A whole one stays.
func (o *Operator) SetAsideJournal() error {
	return o.inHome(func(home *apply.Home) error {
		if _, err := apply.OpenDigest(home); err == nil {
			o.Caller.Say("The journal is not damaged; it stays where it is.")
			return nil
		}
		name, err := apply.SetAsideJournal(home)
		if err == nil {
			o.Caller.Say("The damaged journal is " + name + " now.")
		}
		return err
	})
}

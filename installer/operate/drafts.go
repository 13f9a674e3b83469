package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"slipway/atomicfile"
	"slipway/checks/client"
	"slipway/checks/measure"
	"slipway/checks/suite"
	"slipway/installer/apply"
	"slipway/installer/launch"
)

// MeasuredDraft is how many tokens are drafted at a time on this machine, and why.
type MeasuredDraft struct {
	Draft  string  `json:"draft"`
	Tokens int     `json:"tokens"` // at a time; 0: none, because none gains
	Gain   float64 `json:"gain"`   // rate over the undrafted one; 1 for none
}

// Sentence says it to a person.
func (d MeasuredDraft) Sentence() string {
	if d.Tokens == 0 {
		return fmt.Sprintf("Drafting with %s is not faster on this machine, so it is off. To give its memory back: "+
			"--draft none.", d.Draft)
	}
	return fmt.Sprintf("Drafting with %s, %d tokens at a time: %.2f times the rate without a draft, measured here.",
		d.Draft, d.Tokens, d.Gain)
}

// keptDraft is what the home remembers of a sweep: it holds for this server program, model and device alone.
type keptDraft struct {
	SchemaVersion int           `json:"schema_version"` // 1
	Key           draftKey      `json:"key"`
	Measured      MeasuredDraft `json:"measured"`
	At            time.Time     `json:"at"`
}

type draftKey struct {
	ProgramSHA256 string `json:"program_sha256"`
	ModelID       string `json:"model_id"`
	Revision      string `json:"revision"`
	Device        string `json:"device"`
	Draft         string `json:"draft"`
}

func draftKeyOf(set launch.Settings, draft string) draftKey {
	return draftKey{set.ProgramSHA256, set.ModelID, set.Revision, set.Device, draft}
}

// A short sweep of set-up: enough to tell a gain of a tenth.
const (
	shortSweepTokens = 48
	shortSweepRounds = 2
)

// measureDraft puts the best number of drafted tokens in force on a server that answers: the one that was measured here
// before, or that of a short sweep. nil: the server has no draft. Errors: those of Running, of Judged, of the sweep and
// of the home. They fail no set-up: a server that answers is set up, whatever its draft gains.
func (o *Operator) measureDraft(ctx context.Context) (*MeasuredDraft, error) {
	set, err := o.Running(ctx)
	if err != nil {
		return nil, err
	}
	server, _, err := o.Judged(ctx, ServerInput{Patience: firstAnswerLimit})
	if err != nil {
		return nil, err
	}
	if server.Details.MostDraftTokens == 0 {
		return nil, nil
	}
	if known := o.keptDraft(draftKeyOf(set, server.Details.Draft)); known != nil {
		return known, o.putInForce(ctx, server, known)
	}
	o.Caller.Say("Measuring how many tokens to draft at a time. Ctrl-C leaves it for later; the server stays.")
	answer, err := (&suite.Runner{Server: server}).SweepDrafts(ctx, suite.SweepInput{MaxTokens: shortSweepTokens,
		Rounds: shortSweepRounds})
	if err != nil {
		return nil, err
	}
	kept, err := o.keepDraft(ctx, set, server, answer.Sweep)
	return &kept, err
}

// knownDraft puts what was measured here before in force on a server that was started; nil: nothing is known.
func (o *Operator) knownDraft(ctx context.Context) (*MeasuredDraft, error) {
	set, err := o.Running(ctx)
	if err != nil || set.Draft == "" || set.Draft == "none" {
		return nil, err
	}
	known := o.keptDraft(draftKeyOf(set, set.Draft))
	if known == nil {
		return nil, nil
	}
	server, _, err := o.Judged(ctx, ServerInput{Patience: firstAnswerLimit})
	if err != nil {
		return nil, err
	}
	return known, o.putInForce(ctx, server, known)
}

func (o *Operator) putInForce(ctx context.Context, server *client.Server, known *MeasuredDraft) error {
	if known.Tokens == server.Details.DraftTokens || known.Tokens > server.Details.MostDraftTokens {
		return nil
	}
	return server.SetDraftTokens(ctx, known.Tokens)
}

// MeasureDraftsInput is the input of MeasureDrafts.
type MeasureDraftsInput struct {
	suite.SweepInput
	Server ServerInput `json:"server"`
	Keep   bool        `json:"keep"` // put the best number in force and use it again; only for the server of the home
}

// MeasureDrafts sweeps over the numbers of tokens that a server can draft at a time. Errors: those of Judged and of
// suite.SweepDrafts, and a usage *Error where another's server should keep something.
func (o *Operator) MeasureDrafts(ctx context.Context, in MeasureDraftsInput) (suite.SweepAnswer, error) {
	if in.Keep && in.Server.URL != "" {
		return suite.SweepAnswer{}, wrong("--keep is for the server that slipway started: leave --url out")
	}
	if err := in.Check(); err != nil {
		return suite.SweepAnswer{}, err
	}
	server, _, err := o.Judged(ctx, in.Server)
	if err != nil {
		return suite.SweepAnswer{}, err
	}
	answer, err := (&suite.Runner{Server: server, Version: o.Version}).SweepDrafts(ctx, in.SweepInput)
	if err != nil || !in.Keep {
		return answer, err
	}
	set, err := o.Running(ctx)
	if err == nil {
		_, err = o.keepDraft(ctx, set, server, answer.Sweep)
	}
	answer.Kept = err == nil
	return answer, err
}

// keepDraft puts the best number of a sweep in force and remembers it.
func (o *Operator) keepDraft(ctx context.Context, set launch.Settings, server *client.Server,
	sweep measure.Sweep) (MeasuredDraft, error) {
	kept := MeasuredDraft{Draft: sweep.Draft, Tokens: sweep.Best, Gain: sweep.Rows[sweep.Best].Gain}
	if err := server.SetDraftTokens(ctx, sweep.Best); err != nil {
		return kept, err
	}
	data, err := json.MarshalIndent(keptDraft{1, draftKeyOf(set, sweep.Draft), kept, time.Now().UTC()}, "", "  ")
	if err != nil {
		panic("operate: a measured draft that cannot be written: " + err.Error())
	}
	return kept, o.inHome(func(home *apply.Home) error {
		return atomicfile.Replace(home.Root, apply.DraftPath, append(data, '\n'), 0o600)
	})
}

// keptDraft is what was measured with this key; nil where nothing was, or the file is damaged.
func (o *Operator) keptDraft(key draftKey) (known *MeasuredDraft) {
	o.inHome(func(home *apply.Home) error {
		data, err := home.Root.ReadFile(apply.DraftPath)
		if err != nil {
			return err
		}
		var kept keptDraft
		if err := json.Unmarshal(data, &kept); err == nil && kept.SchemaVersion == 1 && kept.Key == key {
			known = &kept.Measured
		}
		return nil
	})
	return known
}

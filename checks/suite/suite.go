// Package suite carries the checks out: each is a function from an input to a report. It makes the setup, continues
// where an unfinished run of the same setup was, asks, scores, and gives the files their final names. The packages
// beside it ask and score; callers bring a server and a folder for the answers.
package suite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway/checks/client"
	"slipway/checks/record"
	"slipway/fault"
)

// Runner checks one server.
type Runner struct {
	Server  *client.Server // already asked for its model
	Version string         // of the program that checks
	Profile string         // of our own server, which decides how it answers; empty: not known
	// OpenFolder opens the folder of answers and gives its absolute path.
	OpenFolder func() (path string, folder *os.Root, err error)
	Say        func(text string) // a sentence while work continues
}

// Input is what every check takes.
type Input struct {
	Name      string  `json:"name"`    // of the run; empty: the check's
	Restart   bool    `json:"restart"` // set an unfinished run of that name aside
	Seed      uint64  `json:"seed"`
	Samples   int     `json:"samples"`    // of each kind, 1 to 100000
	MaxTokens int     `json:"max_tokens"` // of an answer, 1 to 100000
	Thinking  bool    `json:"thinking"`
	Lengths   []int   `json:"lengths"`  // tokens of the prompts, 128 to 4194304; empty: what the window takes
	AtLeast   float64 `json:"at_least"` // share that has to be found in all, 0 to 1, or the check fails
	Quick     bool    `json:"quick"`    // a small sample: an impression, no score
}

// The bounds of every number of samples, tokens and repetitions, and of a prompt's length in tokens.
const (
	mostOfAnything    = 100_000
	leastLengthTokens = 128
	mostLengthTokens  = 4 << 20
)

// Check refuses values that no check can have. Error: *InputError, which names the flag.
func (in Input) Check() error {
	if err := between1And("samples", in.Samples, mostOfAnything); err != nil {
		return err
	}
	if err := between1And("max-tokens", in.MaxTokens, mostOfAnything); err != nil {
		return err
	}
	for _, n := range in.Lengths {
		if n < leastLengthTokens || n > mostLengthTokens {
			return wrong("--lengths has %d, and a length is a number of tokens from %d to %d, such as 4096 or 4k", n,
				leastLengthTokens, mostLengthTokens)
		}
	}
	if !(in.AtLeast >= 0 && in.AtLeast <= 1) {
		return wrong("--at-least is %v, and is a share from 0 to 1", in.AtLeast)
	}
	if in.Name != "" && !record.GoodName(in.Name) {
		return wrong("--name is %q, and a name has small letters, digits, dots, dashes and underscores", in.Name)
	}
	return nil
}

func between1And(flag string, n, most int) error {
	if n < 1 || n > most {
		return wrong("--%s is %d, and must be 1 to %d", flag, n, most)
	}
	return nil
}

// CheckAnswer is the answer of a check.
type CheckAnswer struct {
	record.Report
	AtLeast float64 `json:"-"` // share that had to be found, 0 to 1
}

// Class is CheckFailed where something is wrong, or where less than the least share was found.
func (a CheckAnswer) Class() fault.Class {
	if a.Failed() || belowLeast(a.Report, a.AtLeast) {
		return fault.CheckFailed
	}
	return fault.OK
}

// InputError is a mistake in what was asked for.
type InputError struct {
	Text string
	Step fault.Step
}

func (e *InputError) Error() string { return e.Text }

// Fault: see package fault.
func (e *InputError) Fault() fault.Fault { return fault.Fault{Class: fault.Usage, Step: e.Step} }

func wrong(format string, args ...any) error {
	return &InputError{fmt.Sprintf(format, args...), fault.ReadHelp}
}

// UnfinishedError is why a run broke off. What was answered is kept.
type UnfinishedError struct {
	Err  error
	File string // of the answers so far
}

func (e *UnfinishedError) Error() string { return e.Err.Error() }

func (e *UnfinishedError) Unwrap() error { return e.Err }

// setup is what every check's setup begins with.
func (r *Runner) setup(check string, in Input) (record.Setup, error) {
	if err := in.Check(); err != nil {
		return record.Setup{}, err
	}
	details := r.Server.Details
	setup := record.Setup{Check: check, Program: r.Version, URL: r.Server.Base, Model: r.Server.Model,
		Revision: details.Revision, Seed: in.Seed,
		Samples: in.Samples, Lengths: []int{}, MaxTokens: in.MaxTokens, Thinking: in.Thinking, Quick: in.Quick,
		Options: map[string]string{}}
	if r.Profile != "" {
		setup.Options["profile"] = r.Profile
	}
	if details.PrefillPolicy != "" {
		setup.Options["prefill_policy"], setup.Options["kv_format"] = details.PrefillPolicy, details.KVFormat
	}
	return setup, nil
}

// conclude makes the report of all answers, and the files beside it by their endings. It never returns nil.
type conclude func(answers []record.Answer, report *record.Report) (beside map[string][]byte)

// run carries a check out. Errors: *InputError, *record.OtherSetupError, *record.DamagedError, *UnfinishedError.
func (r *Runner) run(ctx context.Context, in Input, setup record.Setup, tasks []record.Task,
	end conclude) (CheckAnswer, error) {
	answer, err := r.report(ctx, in, setup, tasks, end)
	return CheckAnswer{answer, in.AtLeast}, err
}

func (r *Runner) report(ctx context.Context, in Input, setup record.Setup, tasks []record.Task,
	end conclude) (record.Report, error) {
	path, folder, err := r.OpenFolder()
	if err != nil {
		return record.Report{}, err
	}
	defer folder.Close()
	name := runName(in, setup)
	if !record.GoodName(name) {
		return record.Report{}, wrong("--name makes %q, which is too long for a name", name)
	}
	book, err := record.Open(folder, name, setup, in.Restart, time.Now())
	if err != nil {
		return record.Report{}, err
	}
	defer book.Close()
	if n := book.Done(); n > 0 {
		r.Say(fmt.Sprintf("Continuing %s: %d of %d tasks are done.", name, n, len(tasks)))
	}
	answers, err := book.Run(ctx, tasks, r.progress(setup.Check))
	if errors.As(err, new(*record.OtherSetupError)) {
		return record.Report{}, err
	}
	if err != nil {
		return record.Report{}, &UnfinishedError{err, filepath.Join(path, name+".partial.jsonl")}
	}
	report := record.Report{Setup: setup, Scores: record.ScoresByGroup(answers), Findings: record.FindingsOf(answers),
		Notes: []string{}, Doubts: record.DoubtsOf(answers)}
	beside := map[string][]byte{}
	if end != nil {
		beside = end(answers, &report)
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return report, err
	}
	beside[".json"] = append(bytes.TrimSpace(raw), '\n')
	base, err := book.Finish(time.Now(), beside)
	if err != nil {
		return report, err
	}
	report.Answers = filepath.Join(path, base+".jsonl")
	if beside[".png"] != nil {
		report.Picture = filepath.Join(path, base+".png")
	}
	return report, nil
}

// runName is the name that a run's files begin with.
func runName(in Input, setup record.Setup) string {
	name := cmp.Or(in.Name, setup.Check)
	if side := setup.Options["side"]; side != "" {
		name += "-" + side
	}
	if setup.Quick {
		name += "-quick"
	}
	return name
}

// progressEvery is the time between two sentences on how far a check is.
const progressEvery = 10 * time.Second

func (r *Runner) progress(check string) func(done, of int) {
	last := time.Time{}
	return func(done, of int) {
		if now := time.Now(); done == of && !last.IsZero() || now.Sub(last) > progressEvery {
			last = now
			r.Say(fmt.Sprintf("%s: %d of %d", check, done, of))
		}
	}
}

// randomWord is 16 letters that no earlier prompt began with.
func randomWord() string {
	var raw [16]byte
	rand.Read(raw[:])
	for i := range raw {
		raw[i] = 'a' + raw[i]%26
	}
	return string(raw[:])
}

package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"slipway/fault"
	"slipway/installer/plan"
)

// Condition is what a worker finds before it acts.
type Condition struct {
	Done         bool   // the state after: nothing to do
	Conflict     string // neither the state before nor the state after; why
	MissingBytes int64  // that the home still has to take for it, as far as it is known
}

// Worker carries out one kind of action in an open home.
type Worker interface {
	// Check looks and writes nothing. home is nil while there is none yet.
	Check(ctx context.Context, home *Home) (Condition, error)
	// Do brings about the state after, from the state before or from any point in between, and lists what is there
	// then. It is also called when the state after is there already, to list it: then it changes nothing.
	Do(ctx context.Context, home *Home, report func(Event)) (Outcome, error)
}

// asker is a worker that must learn something before anything is changed. Ask writes nothing.
type asker interface {
	Ask(ctx context.Context, report func(Event)) error
}

// Outcome is what an action left.
type Outcome struct {
	Items []Item
	Notes map[string]string
}

// Event is progress, for a person or a program.
type Event struct {
	Kind      string `json:"event"` // "action", "progress", "note", "waiting", "done"
	Action    string `json:"action,omitempty"`
	Index     int    `json:"index,omitempty"` // from 1
	Count     int    `json:"count,omitempty"`
	Path      string `json:"path,omitempty"` // progress of one file, with its bytes
	DoneBytes int64  `json:"done_bytes,omitempty"`
	AllBytes  int64  `json:"all_bytes,omitempty"`
	Text      string `json:"text,omitempty"`

	// Of all files of a download: what is there, how much that is of, and what the network brought in this run.
	TotalDoneBytes int64 `json:"total_done_bytes,omitempty"`
	TotalBytes     int64 `json:"total_bytes,omitempty"`
	ArrivedBytes   int64 `json:"arrived_bytes,omitempty"`

	// Of what is waited for: how long so far, and how long it usually takes, in words.
	Seconds int    `json:"seconds,omitempty"`
	Usual   string `json:"usual,omitempty"`
}

// waitingFor says what an action that reports nothing is at, by its kind.
var waitingFor = map[plan.Kind]string{plan.ListAction: "Getting the file list", plan.HomeAction: "Making the folder",
	plan.DraftList: "Getting the file list of the draft", plan.DraftAction: "Checking the draft's files",
	plan.ModelAction: "Checking the model's files", plan.EngineAction: "Installing the server",
	plan.SettingsAction: "Writing the settings", plan.StopsAction: "Making sure that nobody uses what will be stopped",
	plan.LaunchAction: "Starting the server"}

// StaleError: a precondition does not hold, and nothing was done.
type StaleError struct {
	Action, Why string
	Err         error // what the check met, nil when Why says all
}

func (e *StaleError) Error() string { return "action " + e.Action + ": " + e.Why }

// Fault is that of what the check met, where it says more than that the precondition does not hold.
func (e *StaleError) Fault() fault.Fault {
	if f, ok := fault.In(e.Err); ok && staleYields[f.Class] {
		return f
	}
	return fault.Fault{Class: fault.Stale, Step: fault.LookAgain}
}

// staleYields are the classes that say more than "stale": who must act, and on what.
var staleYields = map[fault.Class]bool{fault.Refused: true, fault.Consent: true, fault.Integrity: true,
	fault.Locked: true}

func (e *StaleError) Unwrap() error { return e.Err }

// ActionError: an action failed. What came before it is done and stays.
type ActionError struct {
	Action string
	Err    error
}

func (e *ActionError) Error() string { return e.Action + ": " + e.Err.Error() }
func (e *ActionError) Unwrap() error { return e.Err }

// Options of a run.
type Options struct {
	UserHome string // the user's own folder, which is refused as a home
	Command  string // of the caller, for the lock's holder record
	Version  string // of slipway, for the receipt
	Report   func(Event)
	Now      func() time.Time
	Continue []string // our arguments, without the home, that continue the plan: for the journal
}

// Result of a run.
type Result struct {
	Receipt   Receipt
	Changed   int  // actions that changed something
	Continued bool // an earlier run of this digest was taken up
}

// Run carries out a plan: check all, then per action intent, act, result; then the receipt. Errors: *StaleError before
// anything was done, *LockedError, *JournalError, *HomeError, *ActionError; a cancelled context ends it between or
// inside actions with the context's cause.
func Run(ctx context.Context, p plan.Plan, workers map[plan.Kind]Worker, opt Options) (Result, error) {
	if err := checkAll(ctx, p, workers, opt); err != nil {
		return Result{}, err
	}
	asked, err := askFirst(ctx, p, workers, opt)
	if err != nil {
		return Result{}, err
	}
	before := LookHome(p.Decisions.Home, opt.UserHome)
	home, err := MakeHome(p.Decisions.Home, opt.UserHome)
	if err != nil {
		return Result{}, err
	}
	defer home.Close()
	lock, err := home.Lock(opt.Command)
	if err != nil {
		return Result{}, err
	}
	defer lock.Release()
	if dead := lock.DeadHolder; dead != nil {
		opt.Report(Event{Kind: "note", Text: fmt.Sprintf("An earlier run (pid %d, %s) ended without finishing; its "+
			"lock is taken over.", dead.Process.PID, dead.Command)})
	}
	if err := sweep(home); err != nil {
		return Result{}, err
	}
	if err := home.setAsideReceipts(opt.Report); err != nil {
		return Result{}, err
	}
	if open, err := OpenDigest(home); err == nil && open != "" {
		text := fmt.Sprintf("Continuing the plan %.19s that was begun before.", p.Digest)
		if open != p.Digest {
			text = fmt.Sprintf("The plan %.19s that was begun before is replaced by this one; what it made is kept.",
				open)
		}
		opt.Report(Event{Kind: "note", Text: text})
	}
	begun := Begun{p.Digest, &p.Decisions.Request, opt.Continue}
	journal, other, err := openJournal(home, begun, opt.stamp)
	if err != nil {
		return Result{}, err
	}
	defer journal.close()
	if other != nil {
		if err := settle(home, journal, other, begun, opt); err != nil {
			return Result{}, err
		}
	}
	run := &run{home: home, journal: journal, workers: workers, opt: opt, asked: asked, receipt: Receipt{
		SchemaVersion: plan.SchemaVersion, Digest: p.Digest, Complete: true, Version: opt.Version,
		Decisions: p.Decisions}}
	run.result.Continued, run.madeHome = len(journal.records) > 1, !before.Ours
	for i, action := range p.Actions {
		if err := run.act(ctx, action, i+1, len(p.Actions)); err != nil {
			return run.result, err
		}
	}
	return run.finish()
}

type run struct {
	home    *Home
	journal *Journal
	workers map[plan.Kind]Worker
	opt     Options
	asked   map[string]bool // actions that were announced when they asked

	madeHome bool // by this run, before its first action: the journal is in it
	receipt  Receipt
	result   Result
}

// act re-checks an action's precondition, journals the intent, acts, and journals what is there then.
func (r *run) act(ctx context.Context, a plan.Action, index, count int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	worker := r.workers[a.Kind]
	condition, err := worker.Check(ctx, r.home)
	if err != nil {
		return actionError(ctx, a, err)
	}
	if condition.Conflict != "" {
		return &ActionError{a.ID, &StaleError{Action: a.ID, Why: condition.Conflict}}
	}
	visible := !condition.Done || a.Kind == plan.HomeAction && r.madeHome
	if visible && !r.asked[a.ID] {
		r.opt.Report(Event{Kind: "action", Action: a.ID, Index: index, Count: count, Text: a.Sentence})
	}
	if !condition.Done {
		r.result.Changed++
	}
	journalled := r.journal.finished(a)
	if !condition.Done || !journalled {
		if err := r.journal.intent(a); err != nil {
			return &ActionError{a.ID, err}
		}
	}
	var outcome Outcome
	err = Pulse(r.opt.Report, Event{Action: a.ID, Text: waitingFor[a.Kind]}, func(report func(Event)) (err error) {
		outcome, err = worker.Do(ctx, r.home, report)
		return err
	})
	if err != nil {
		return actionError(ctx, a, err)
	}
	if !condition.Done || !journalled {
		if err := r.journal.result(a, outcome.Items); err != nil {
			return &ActionError{a.ID, err}
		}
	}
	if visible {
		r.opt.Report(Event{Kind: "done", Action: a.ID, Index: index, Count: count})
	}
	r.receipt.Actions = append(r.receipt.Actions, Done{ID: a.ID, Sentence: a.Sentence, Undo: a.Undo,
		Items: outcome.Items, Notes: outcome.Notes, Time: r.opt.stamp()})
	return nil
}

// finish writes the receipt, then closes the journal: what was made is always listed in one of the two.
func (r *run) finish() (Result, error) {
	r.receipt.Time = r.opt.stamp()
	if err := r.home.writeReceipt(r.receipt); err != nil {
		return r.result, err
	}
	if err := r.journal.end(); err != nil {
		return r.result, err
	}
	r.result.Receipt = r.receipt
	return r.result, nil
}

// askFirst lets the actions that are not done learn what they must, and names those that were announced for it.
func askFirst(ctx context.Context, p plan.Plan, workers map[plan.Kind]Worker, opt Options) (map[string]bool, error) {
	asked := map[string]bool{}
	for i, a := range p.Actions {
		worker, ok := workers[a.Kind].(asker)
		if !ok {
			continue
		}
		home, err := OpenHome(p.Decisions.Home, opt.UserHome)
		if err != nil {
			home = nil
		}
		condition, err := workers[a.Kind].Check(ctx, home)
		if home != nil {
			home.Close()
		}
		if err != nil {
			return nil, actionError(ctx, a, err)
		}
		if condition.Done {
			continue
		}
		asked[a.ID] = true
		opt.Report(Event{Kind: "action", Action: a.ID, Index: i + 1, Count: len(p.Actions), Text: a.Sentence})
		err = Pulse(opt.Report, Event{Action: a.ID, Text: waitingFor[a.Kind]}, func(report func(Event)) error {
			return worker.Ask(ctx, report)
		})
		if err != nil {
			return nil, actionError(ctx, a, err)
		}
	}
	return asked, nil
}

// checkAll holds every precondition against the world before the first action; nothing is written.
func checkAll(ctx context.Context, p plan.Plan, workers map[plan.Kind]Worker, opt Options) error {
	home, err := OpenHome(p.Decisions.Home, opt.UserHome)
	switch {
	case err == nil:
		defer home.Close()
	case errors.Is(err, ErrNoHome):
		home = nil
	default:
		return err
	}
	for _, a := range p.Actions {
		worker, ok := workers[a.Kind]
		if !ok {
			panic(fmt.Sprintf("apply: no worker for %s", a.Kind))
		}
		condition, err := worker.Check(ctx, home)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return &StaleError{Action: a.ID, Why: err.Error(), Err: err}
		}
		if condition.Conflict != "" {
			return &StaleError{Action: a.ID, Why: condition.Conflict}
		}
	}
	return nil
}

// settle writes the receipt of a plan that was abandoned for this one, from its journal, and begins this one's journal.
func settle(home *Home, journal *Journal, records []record, begun Begun, opt Options) error {
	if err := noteAbandoned(home, records, opt); err != nil {
		return err
	}
	return journal.restart(begun)
}

// Abandon closes the open plan of a digest without finishing it: a receipt lists what it made, so that uninstall finds
// it. Where another plan or none is open it does nothing. The caller holds the lock.
func Abandon(home *Home, digest string, opt Options) error {
	open, err := OpenDigest(home)
	if err != nil || open != digest {
		return err
	}
	journal, _, err := openJournal(home, Begun{Digest: digest}, opt.stamp)
	if err != nil {
		return err
	}
	defer journal.close()
	if err := noteAbandoned(home, journal.records, opt); err != nil {
		return err
	}
	return journal.end()
}

func noteAbandoned(home *Home, records []record, opt Options) error {
	receipt, err := home.Receipt(records[0].Digest)
	if errors.Is(err, fs.ErrNotExist) {
		receipt = Receipt{SchemaVersion: plan.SchemaVersion, Digest: records[0].Digest, Version: opt.Version}
	} else if err != nil {
		return err
	}
	for _, rec := range records {
		switch rec.Event {
		case actionIntent:
			receipt.Actions = append(receipt.Actions,
				Done{ID: rec.Action, Sentence: "begun and given up for another plan",
					Items: settledItems(rec.Paths), Time: rec.Time})
		case actionResult:
			receipt.Actions = append(receipt.Actions,
				Done{ID: rec.Action, Sentence: "done before the plan was given up",
					Items: rec.Items, Time: rec.Time})
		}
	}
	receipt.Time = opt.stamp()
	return home.writeReceipt(receipt)
}

// settledItems lists the folders that an unfinished action may have made; files in them without a final name are swept
// by uninstall as partial ones.
func settledItems(paths []string) []Item {
	var items []Item
	for _, p := range paths {
		items = append(items, Item{Kind: FolderItem, Path: p})
	}
	return items
}

func (o Options) stamp() string { return o.Now().UTC().Format(time.RFC3339) }

// actionError keeps a cancellation what it is: the person stopped the run, the action did not fail.
func actionError(ctx context.Context, a plan.Action, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var stale *StaleError
	if errors.As(err, &stale) {
		return stale
	}
	return &ActionError{a.ID, err}
}

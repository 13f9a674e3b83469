package installer

import (
	"context"
	"fmt"
	"os"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/units"
)

// bring returns the function that gets a part's files: from this machine where other tools have them, else from
// the hub. The lock's hashes decide about both. The hub's settings come from the environment, as its own tools read it.
func bring(at Environment, in Input, action plan.Kind) func(context.Context, *os.Root, manifests.Lock,
	func(apply.Event)) error {
	return func(ctx context.Context, home *os.Root, lock manifests.Lock, report func(apply.Event)) error {
		if err := adopt(ctx, home, lock, store.Sources(lock.Repo, at.UserHome, at.Getenv, folders(in.ModelDir)...),
			action, report); err != nil {
			return err
		}
		config := hub.ConfigFromEnv(at.Getenv)
		config.LimitBytesPerSec = in.LimitBytesPerSec
		whole, err := wholeBytes(ctx, home, lock)
		if err != nil {
			return err
		}
		if missing := lock.TotalBytes() - whole; in.MaxDownloadBytes > 0 && missing > in.MaxDownloadBytes {
			return &DownloadError{NeedBytes: missing, AllowedBytes: in.MaxDownloadBytes}
		}
		config.Notify = arrivals(lock, whole, action, report)
		client, err := hub.New(config)
		if err != nil {
			return err
		}
		defer client.Close()
		report(apply.Event{Kind: "waiting", Action: string(action), Text: "Waiting for " + client.Name()})
		return client.Download(ctx, hub.Request{Home: home, Lock: lock}, arrivals(lock, whole, action, report))
	}
}

// DownloadError: more would have to be downloaded than was allowed.
type DownloadError struct {
	NeedBytes, AllowedBytes int64
	Smaller                 string     // a model that the allowed size suffices for; empty: none is known
	Plan                    *plan.Plan // nil once the plan is carried out
}

func (e *DownloadError) Error() string {
	return fmt.Sprintf("the model is a download of %s, and --max-download allows %s", units.Short(e.NeedBytes),
		units.Short(e.AllowedBytes))
}

// Details is the plan, where nothing of it was done.
func (e *DownloadError) Details() any { return e.Plan }

// Fault: see package fault.
func (e *DownloadError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Consent, Step: fault.ShowPlan}
}

// TooLarge is a *DownloadError where the plan downloads more than this; else nil. 0 allows any size.
func (p Prepared) TooLarge(allowedBytes int64) *DownloadError {
	if allowedBytes == 0 || p.DownloadBytes() <= allowedBytes {
		return nil
	}
	e := &DownloadError{NeedBytes: p.DownloadBytes(), AllowedBytes: allowedBytes, Plan: &p.Plan}
	for _, other := range p.Alternatives {
		if other.Fits && other.Which == "smaller" && other.DownloadBytes <= allowedBytes {
			e.Smaller = other.Model
		}
	}
	return e
}

func folders(modelDir string) []string {
	if modelDir == "" {
		return nil
	}
	return []string{modelDir}
}

// adopt copies files that are on this machine already and have the right hash. The originals are only read.
func adopt(ctx context.Context, home *os.Root, lock manifests.Lock, places []string, action plan.Kind,
	report func(apply.Event)) error {
	note := func(format string, args ...any) {
		report(apply.Event{Kind: "note", Action: string(action), Text: fmt.Sprintf(format, args...)})
	}
	found, busy := store.Find(ctx, lock, places)
	for _, folder := range busy {
		note("%q is being filled by another program and was left out.", folder)
	}
	if len(found) == 0 {
		return nil
	}
	note("Looking at files of the right size that are on this machine already.")
	adopted, wrong, err := store.AdoptAll(ctx, home, lock, found)
	for _, name := range adopted {
		note("%s was here already and has the right hash.", name)
	}
	for _, w := range wrong {
		note("%s; it was left alone.", w.Error())
	}
	return err
}

// wholeBytes is how much of a model is in its place already.
func wholeBytes(ctx context.Context, home *os.Root, lock manifests.Lock) (int64, error) {
	found, err := store.Verify(ctx, home, lock, false)
	whole := lock.TotalBytes()
	for _, bad := range found.Bad() {
		whole -= bad.ExpectedBytes
	}
	return whole, err
}

// arrivals turns the hub's events, which say what is new, into how far each file and all of them are; wholeBytes of
// the files were there before. Events come one at a time.
func arrivals(lock manifests.Lock, wholeBytes int64, action plan.Kind, report func(apply.Event)) hub.Progress {
	done, total, arrived := map[string]int64{}, wholeBytes, int64(0)
	set := func(path string, bytes int64) {
		total += bytes - done[path]
		done[path] = bytes
	}
	return func(e hub.Event) {
		switch e.Kind {
		case hub.Started:
			set(e.Path, e.Bytes)
		case hub.Arrived:
			set(e.Path, done[e.Path]+e.Bytes)
			arrived += e.Bytes
		case hub.Done:
			set(e.Path, e.Total)
		case hub.Waiting, hub.Notice:
			report(apply.Event{Kind: "note", Action: string(action), Path: e.Path, Text: e.Why})
			return
		default:
			return
		}
		if e.Kind == hub.Arrived && done[e.Path] >= e.Total { // whole, and not yet checked: Done says so
			if total >= lock.TotalBytes() {
				report(apply.Event{Kind: "waiting", Action: string(action), Text: "Checking the last hashes"})
			}
			return
		}
		report(apply.Event{Kind: "progress", Action: string(action), Path: e.Path, DoneBytes: done[e.Path],
			AllBytes: e.Total, TotalDoneBytes: total, TotalBytes: lock.TotalBytes(), ArrivedBytes: arrived})
	}
}

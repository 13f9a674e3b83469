package installer

import (
	"context"
	"fmt"
	"os"

	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/store"
	"slipway/manifests"
)

// bring returns the function that gets a hub model's files: from this machine where other tools have them, else from
// the hub. The lock's hashes decide about both. The hub's settings come from the environment, as its own tools read it.
func bring(at Environment, in Input) func(context.Context, *os.Root, manifests.Lock, func(apply.Event)) error {
	return func(ctx context.Context, home *os.Root, lock manifests.Lock, report func(apply.Event)) error {
		if err := adopt(ctx, home, lock, store.Sources(lock.Repo, at.UserHome, at.Getenv, folders(in.ModelDir)...),
			report); err != nil {
			return err
		}
		config := hub.ConfigFromEnv(at.Getenv)
		config.LimitBytesPerSec = in.LimitBytesPerSec
		config.Notify = arrivals(report)
		client, err := hub.New(config)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Download(ctx, hub.Request{Home: home, Lock: lock}, arrivals(report))
	}
}

func folders(modelDir string) []string {
	if modelDir == "" {
		return nil
	}
	return []string{modelDir}
}

// adopt copies files that are on this machine already and have the right hash. The originals are only read.
func adopt(ctx context.Context, home *os.Root, lock manifests.Lock, places []string, report func(apply.Event)) error {
	note := func(format string, args ...any) {
		report(apply.Event{Kind: "note", Action: "model", Text: fmt.Sprintf(format, args...)})
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

// arrivals turns the hub's events, which say what is new, into how far each file is. Events come one at a time.
func arrivals(report func(apply.Event)) hub.Progress {
	done := map[string]int64{}
	return func(e hub.Event) {
		switch e.Kind {
		case hub.Started:
			done[e.Path] = e.Bytes
		case hub.Arrived:
			done[e.Path] += e.Bytes
		case hub.Done:
			done[e.Path] = e.Total
		case hub.Waiting, hub.Notice:
			report(apply.Event{Kind: "note", Action: "model", Path: e.Path, Text: e.Why})
			return
		default:
			return
		}
		if e.Kind == hub.Arrived && done[e.Path] >= e.Total {
			return // whole, and not yet checked: Done says so
		}
		report(apply.Event{Kind: "progress", Action: "model", Path: e.Path, DoneBytes: done[e.Path], AllBytes: e.Total})
	}
}

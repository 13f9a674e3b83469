package installer

import (
	"context"
	"os"

	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/manifests"
)

// download returns the hand that brings a hub model's files. Settings of the hub come from the environment, as its own
// tools read it.
func download(getenv func(string) string, limitBytesPerSec int64) func(context.Context, *os.Root, manifests.Lock, func(apply.Event)) error {
	return func(ctx context.Context, home *os.Root, lock manifests.Lock, report func(apply.Event)) error {
		config := hub.ConfigFromEnv(getenv)
		config.LimitBytesPerSec = limitBytesPerSec
		client, err := hub.New(config)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Download(ctx, hub.Request{Home: home, Lock: lock}, arrivals(report))
	}
}

// arrivals turns the hub's events, which tell what is new, into how far each file is. The hub tells one at a time.
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

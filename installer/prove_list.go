package installer

import (
	"context"
	"fmt"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/hub"
	"slipway/installer/pin"
	"slipway/installer/plan"
	"slipway/manifests"
	"slipway/units"
)

// ListError: the file list of a model could not be fetched. Nothing was changed.
type ListError struct {
	Model string
	Host  string // that was asked
	Err   error
}

func (e *ListError) Error() string {
	return fmt.Sprintf("the file list of %s could not be fetched from %s: %v", e.Model, e.Host, e.Err)
}

func (e *ListError) Unwrap() error { return e.Err }

// Fault is that of the cause. Where the network is at fault the model inside this program needs none.
func (e *ListError) Fault() fault.Fault {
	f, _ := fault.Of(e.Err)
	switch {
	case f.Class == fault.Network:
		f.Step = fault.OfferEmbedded
	case f.Step == fault.GetAccess:
		f.Step = fault.GetAccessFirst
	}
	return f
}

// proveList gets the file list of a model and proves it from the revision. It writes nothing. sentence says what the
// list is worth.
func proveList(ctx context.Context, m manifests.Manifest, acceptUnproven bool, say func(string),
	at Environment) (lock manifests.Lock, sentence string, err error) {
	config := hub.ConfigFromEnv(at.Getenv)
	config.Notify = func(e hub.Event) {
		if say != nil && e.Why != "" {
			say(e.Why)
		}
	}
	client, err := hub.New(config)
	if err != nil {
		return lock, "", err
	}
	defer client.Close()
	lock, sentence, err = pin.Lock(ctx, client, pin.Ask{Repo: m.Repo, Revision: m.Revision, Include: m.Include,
		AcceptUnproven: acceptUnproven, Now: time.Now()})
	if err != nil {
		return lock, "", &ListError{m.ID, client.Name(), err}
	}
	if shipped, ok := manifests.BundledLock(m.Repo, m.Revision); ok {
		if err := pin.Contradicts(shipped, lock); err != nil {
			return lock, "", err
		}
	}
	return lock, sentence, nil
}

// hubHost is the host that would be asked. The error is a setting that names none.
func hubHost(at Environment) (string, error) {
	if at.Getenv == nil {
		return "the hub", nil
	}
	client, err := hub.New(hub.ConfigFromEnv(at.Getenv))
	if err != nil {
		return "the hub", err
	}
	defer client.Close()
	return client.Name(), nil
}

// listWords says what a file list is worth, in a line.
func listWords(lock manifests.Lock) string {
	said := fmt.Sprintf("%d files, %s", len(lock.Files), units.Short(lock.TotalBytes()))
	if n := lock.Unproven(); n > 0 {
		return fmt.Sprintf("%s; %d of them are without a proof.", said, n)
	}
	return said + ", every hash proven."
}

// prove is what the list action of a part does; nil where the list is in this program.
func prove(at Environment, m manifests.Manifest, part plan.Part) func(context.Context,
	func(apply.Event)) (manifests.Lock, error) {
	if !part.NeedsList() {
		return nil
	}
	return func(ctx context.Context, report func(apply.Event)) (manifests.Lock, error) {
		host, err := hubHost(at)
		if err != nil {
			return manifests.Lock{}, err
		}
		report(apply.Event{Kind: "waiting", Action: string(part.ListKind), Text: "Waiting for " + host})
		note := func(text string) { report(apply.Event{Kind: "note", Action: string(part.ListKind), Text: text}) }
		lock, _, err := proveList(ctx, m, !part.ProvenOnly, note, at)
		if err == nil {
			note(listWords(lock))
		}
		return lock, err
	}
}

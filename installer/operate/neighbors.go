package operate

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/plan"
	"slipway/installer/process"
	"slipway/termtext"
)

// NeighborsAnswer is the answer of Neighbors. Nothing was changed, and no program of a neighbour was run.
type NeighborsAnswer struct {
	Neighbors []Neighbor `json:"neighbors"`
	Stopped   []Restored `json:"stopped"` // by slipway, and not back yet
}

// Neighbor is another server as it is shown: never its arguments or its environment.
type Neighbor struct {
	Kind           string   `json:"kind"`
	Title          string   `json:"title"`
	Address        string   `json:"address"`
	Port           int      `json:"port"`
	PID            int      `json:"pid"` // 0 where the system hides it
	UID            int      `json:"uid"`
	Program        string   `json:"program"`
	Arguments      int      `json:"arguments"` // how many
	Started        string   `json:"started"`   // RFC 3339, or empty
	StartedBy      string   `json:"started_by"`
	StarterName    string   `json:"starter_name"`
	Models         []string `json:"models"`
	FootprintBytes int64    `json:"footprint_bytes"`
	Protected      bool     `json:"protected"`
	State          string   `json:"state"` // idle, busy or unknown
	Reasons        []string `json:"reasons"`
	Clients        []string `json:"clients"`
	Wedged         bool     `json:"wedged"`
	Channel        string   `json:"channel"` // how slipway would stop it; empty: it would not
	Refusal        string   `json:"refusal"` // why not
	Losses         []string `json:"losses"`  // what cannot be kept for its return: stopped only with --accept-loss
	Missing        []string `json:"missing"` // what would differ without harm
	Line           string   `json:"line"`
}

// Neighbors finds the other model servers on this machine and looks whether they work.
func (o *Operator) Neighbors(ctx context.Context) (NeighborsAnswer, error) {
	system, err := o.neighborhood()
	if err != nil {
		return NeighborsAnswer{}, err
	}
	var own []process.Identity
	o.inHome(func(home *apply.Home) error {
		if status, err := launch.Look(ctx, home.Root, home.Path); err == nil {
			own = append(own, status.Record.Process)
		}
		return nil
	})
	servers, err := system.Find(ctx, own...)
	if err != nil {
		return NeighborsAnswer{}, err
	}
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() { servers[i].Idle = system.ProveIdle(ctx, servers[i], neighbor.LookTiming(system.Timing)) })
	}
	all.Wait()
	pending, err := system.Pending()
	if err != nil {
		return NeighborsAnswer{}, err
	}
	answer := NeighborsAnswer{Neighbors: []Neighbor{}, Stopped: restoredOf(pending)}
	for _, server := range servers {
		answer.Neighbors = append(answer.Neighbors, neighborOf(server))
	}
	return answer, nil
}

func neighborOf(server neighbor.Server) Neighbor {
	v := Neighbor{
		Kind: server.Kind, Title: server.Title, Address: server.Address.String(), Port: server.Port, PID: server.PID,
		UID:     server.UID,
		Program: termtext.Line(server.Exe), Arguments: server.Arguments,
		StartedBy: server.Starter.Type, StarterName: termtext.Line(server.Starter.Name),
		FootprintBytes: server.FootprintBytes, Protected: server.Protected, State: string(server.Idle.State),
		Reasons: orEmpty(server.Idle.Reasons), Clients: orEmpty(server.Idle.Clients), Wedged: server.Idle.Wedged,
		Channel: string(server.Channel), Refusal: server.Refusal, Losses: orEmpty(server.Losses),
		Missing: orEmpty(server.Missing),
		Models:  orEmpty(server.Contender(time.Now()).Models),
	}
	if !server.Started.IsZero() {
		v.Started = server.Started.UTC().Format(time.RFC3339)
	}
	about := server.Idle.Sentence()
	if server.Refusal != "" {
		about += "; slipway does not stop it: " + server.Refusal
		if server.Kind == "unknown" || server.Idle.Reasons != nil && server.Idle.Reasons[0] == server.Refusal {
			about = server.Refusal
		}
	}
	v.Line = fmt.Sprintf("%s: %s", server.Name(), about)
	return v
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// RestoreAnswer is the answer of Restore.
type RestoreAnswer struct {
	Neighbors []Restored `json:"neighbors"`
	DryRun    bool       `json:"-"`
}

// Class says whether every neighbour is back: what could not come back is refused.
func (a RestoreAnswer) Class() fault.Class { return restoreClass(a.Neighbors, a.DryRun) }

// Restored is one stopped neighbour and how its restore went.
type Restored struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Title    string   `json:"title"`
	Port     int      `json:"port"`
	Models   []string `json:"models"`
	Result   string   `json:"result"` // restored, kept_running, held, waiting, port_taken, failed, would
	Sentence string   `json:"sentence"`
	Log      string   `json:"log"` // below the home; empty where its output goes elsewhere
}

func restoredOf(list []neighbor.Outcome) []Restored {
	all := []Restored{}
	for _, o := range list {
		r := Restored{ID: o.ID, Kind: o.Server, Title: o.Title, Port: o.Port, Models: []string{}, Result: string(o.Result),
			Sentence: o.Sentence, Log: o.Log}
		for _, m := range o.Models {
			r.Models = append(r.Models, termtext.Line(m.ID))
		}
		all = append(all, r)
	}
	return all
}

func restoreClass(list []Restored, dryRun bool) fault.Class {
	class := fault.OK
	for _, r := range list {
		switch neighbor.Result(r.Result) {
		case neighbor.PortTaken, neighbor.Failed:
			return fault.Refused
		case neighbor.Would:
			if dryRun {
				class = fault.ChangesPending
			}
		case neighbor.Waiting:
			class = fault.Timeout
		}
	}
	return class
}

// RestoreInput is the input of Restore.
type RestoreInput struct {
	DryRun          bool
	ChangedPrograms bool // also start a server whose program file differs from the one that was stopped
}

// Restore starts the servers again that slipway has stopped.
func (o *Operator) Restore(ctx context.Context, in RestoreInput) (RestoreAnswer, error) {
	system, err := o.neighborhood()
	if err != nil {
		return RestoreAnswer{}, err
	}
	system.ChangedPrograms = in.ChangedPrograms
	list, err := system.Restore(ctx, in.DryRun)
	return RestoreAnswer{restoredOf(list), in.DryRun}, err
}

func (o *Operator) restore(ctx context.Context) ([]Restored, error) {
	a, err := o.Restore(ctx, RestoreInput{})
	return a.Neighbors, err
}

// RestoreExec becomes a neighbour: only slipway itself calls it, in a process of its own.
func (o *Operator) RestoreExec(id string, environment []string, changedPrograms bool, report io.Writer) error {
	system, err := o.neighborhood()
	if err != nil {
		return err
	}
	system.ChangedPrograms = changedPrograms
	return system.RestoreExec(id, environment, report)
}

// WatchRestore outlives its launcher and restores when the neighbour's place is free again.
func (o *Operator) WatchRestore(ctx context.Context, id string, in io.Reader, out io.Writer) error {
	system, err := o.neighborhood()
	if err != nil {
		return err
	}
	return system.WatchRestore(ctx, id, in, out)
}

// restoreLeftBehind starts what an earlier slipway has stopped and did not live to start again, unless this run names
// servers to be stopped anyway. What cannot come back is said, and is no reason to stop here.
func (o *Operator) restoreLeftBehind(ctx context.Context, allowStop plan.Kinds) {
	if allowStop != "" {
		return
	}
	if err := o.inHome(func(*apply.Home) error { return nil }); err != nil {
		return // no home, no records; what is wrong with it is said by what follows
	}
	list, err := o.restore(ctx)
	if err != nil {
		o.Coat.Say(fmt.Sprintf("What slipway stopped earlier could not be looked at: %v", err))
	}
	for _, r := range list {
		if neighbor.Result(r.Result) != neighbor.Held {
			o.Coat.Say(r.Sentence)
		}
	}
}

package apply

import (
	"context"
	"fmt"
	"slices"

	"slipway/installer/neighbor"
	records "slipway/installer/neighbor/record"
	"slipway/installer/plan"
	"slipway/installer/process"
)

// neighborsWorker stops the servers that a plan names, if they are exactly those processes and idle.
type neighborsWorker struct {
	decisions plan.Decisions
	digest    string
	system    *neighbor.System
}

// IsStopped reports whether a server of the plan is stopped by slipway, or has ended by itself.
func IsStopped(system *neighbor.System, stop plan.StoppedServer) bool {
	list, _ := system.Folder().List()
	recorded := slices.ContainsFunc(list, func(r records.Record) bool {
		return recordOf(r) == stopKey(stop) && r.State != records.StateRecorded &&
			(r.State != records.StateSignalled || r.Channel != records.ChannelUnload)
	})
	if stop.Channel == string(records.ChannelUnload) {
		return recorded
	}
	now, err := process.Observe(stop.PID)
	runs := err == nil && now.StartUS == stop.StartUS && now.BootID == stop.BootID && now.Exe == stop.Exe
	return !runs
}

// recordOf and stopKey name the same server from either side.
func recordOf(r records.Record) [4]string {
	return [4]string{r.Server, fmt.Sprint(r.Port), fmt.Sprint(r.PID, " ", r.StartUS), r.BootID}
}

func stopKey(s plan.StoppedServer) [4]string {
	return [4]string{s.Kind, fmt.Sprint(s.Port), fmt.Sprint(s.PID, " ", s.StartUS), s.BootID}
}

func (w neighborsWorker) pending() []plan.StoppedServer {
	var list []plan.StoppedServer
	for _, stop := range w.decisions.Stops {
		if !IsStopped(w.system, stop) {
			list = append(list, stop)
		}
	}
	return list
}

// Check is cheap: the proof that they are idle takes its time and belongs to Do, directly before the signal.
func (w neighborsWorker) Check(context.Context, *Home) (Condition, error) {
	return Condition{Done: len(w.pending()) == 0}, nil
}

func (w neighborsWorker) Do(ctx context.Context, home *Home, report func(Event)) (Outcome, error) {
	pending := w.pending()
	var servers []neighbor.Server
	for _, stop := range pending {
		found, err := w.system.At(ctx, stop.Port)
		if err != nil {
			return Outcome{}, err
		}
		i := slices.IndexFunc(found, func(f neighbor.Server) bool {
			id := f.Identity()
			return f.Kind == stop.Kind && f.PID == stop.PID && id.StartUS == stop.StartUS && id.BootID == stop.BootID &&
				id.Exe == stop.Exe && string(f.Channel) == stop.Channel
		})
		if i < 0 {
			return Outcome{}, &StaleError{Action: string(plan.StopsAction),
				Why: fmt.Sprintf("%s (pid %d) on port %d is not the server that the plan names any more", stop.Title,
					stop.PID,
					stop.Port)}
		}
		servers = append(servers, found[i])
	}
	if len(servers) > 0 {
		report(Event{Kind: "note", Action: "neighbors", Text: fmt.Sprintf("Checking for %s that no program uses "+
			"what will be stopped.", w.system.Timing.Span)})
		if _, err := w.system.Stop(ctx, servers, neighbor.StopOptions{PlanDigest: w.digest,
			AcceptLoss: w.decisions.Request.AcceptLoss, RebootAgent: w.decisions.RebootAgent != ""}); err != nil {
			return Outcome{}, err
		}
	}
	if err := writeLaunch(home, w.decisions); err != nil {
		return Outcome{}, err
	}
	notes := map[string]string{}
	for _, stop := range w.decisions.Stops {
		note := "stopped; started again when our server ends"
		if stop.Channel == string(records.ChannelUnload) {
			note = "models unloaded; loaded again when our server ends"
		}
		notes[fmt.Sprintf("%s on port %d", stop.Kind, stop.Port)] = note
	}
	if w.decisions.RebootAgent != "" {
		notes["outside the home"] = w.decisions.RebootAgent + ", removed when all are back"
	}
	return Outcome{Notes: notes}, nil
}

// holdNeighbors keeps stopped neighbours stopped until this process ends.
func holdNeighbors(homePath string) error {
	folder := records.Folder{Home: homePath}
	if list, damaged := folder.List(); len(list)+len(damaged) == 0 {
		return nil
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	return folder.Hold(self)
}

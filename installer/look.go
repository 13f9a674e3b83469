package installer

import (
	"context"
	"errors"
	"fmt"

	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/machine"
	"slipway/installer/plan"
)

// look observes how much of a plan is done. It writes nothing.
func look(ctx context.Context, p plan.Plan, workers map[plan.Kind]apply.Worker, k known, facts machine.Facts, c choice,
	e foundEngine, userHome string) (plan.World, error) {
	w := plan.World{HomeReady: k.view.Ours, NotFit: c.notFit, ModelProblem: c.problem, EngineProblem: e.problem,
		EngineUntrusted: e.untrusted,
		OpenDigest:      k.journal, Warnings: warnings(facts),
		FreeBytes: facts.DiskFree.Value, FreeKnown: facts.DiskFree.Known}
	var journal *apply.JournalError
	switch {
	case errors.As(k.damage, &journal):
		w.JournalDamage = journal.Error() + "."
	case k.damage != nil:
		return w, k.damage
	}
	if k.receipts != nil {
		w.ReceiptDamage = k.receipts.Error() + "."
	}
	if k.home != nil {
		if err := apply.LockDamage(k.home, p.Decisions); err != nil {
			w.LockDamage = err.Error()
		}
	}
	if k.view.Closed != "" {
		w.HomeClosed = k.view.Closed + "."
	}
	if err := k.view.Err; err != nil {
		if err.Conflict {
			w.HomeConflict = err.Error() + "."
		} else {
			w.HomeRefused = err.Error() + "."
		}
	}
	for _, a := range p.Actions {
		if a.Kind == plan.HomeAction || a.Kind == plan.LaunchAction {
			continue
		}
		condition, err := workers[a.Kind].Check(ctx, k.home)
		if err != nil {
			return w, err
		}
		if a.Kind == plan.ListAction || a.Kind == plan.DraftList {
			whole, problem := &w.ListWhole, &w.ListProblem
			if a.Kind == plan.DraftList {
				whole, problem = &w.Draft.ListWhole, &w.Draft.ListProblem
			}
			if *whole = condition.Done; condition.Conflict != "" {
				*problem = "Not set up: " + condition.Conflict + "."
			}
			continue
		}
		if condition.Conflict != "" && w.HomeConflict == "" {
			w.HomeConflict = condition.Conflict + "."
		}
		switch a.Kind {
		case plan.ModelAction:
			w.ModelWhole, w.ModelMissingBytes = condition.Done, condition.MissingBytes
		case plan.DraftAction:
			w.Draft.Whole, w.Draft.MissingBytes = condition.Done, condition.MissingBytes
		case plan.EngineAction:
			w.EngineWhole = condition.Done
		case plan.SettingsAction:
			w.SettingsWhole = condition.Done
		}
	}
	return w, lookServer(ctx, &w, p, k, userHome)
}

func lookServer(ctx context.Context, w *plan.World, p plan.Plan, k known, userHome string) error {
	port, monitor := p.Decisions.Request.Port, p.Decisions.Request.MonitorPort
	var ours launch.Settings // of a server of ours, which will be replaced
	if k.home != nil {
		status, err := launch.Look(ctx, k.home.Root, k.home.Path)
		if err != nil {
			return err
		}
		if by := status.StoppedBy; by != nil {
			w.StoppedBy = by.Home
		}
		if status.Living() {
			w.OurServerPID, w.ServerHung = status.Record.Process.PID, status.State == launch.Hung
			want, err := apply.ServerSettings(k.home, p.Decisions)
			if err == nil && status.Serves(k.home.Path, want) {
				w.ServerRunning = status.State == launch.Running && status.Recorded()
				return nil
			}
			ours = status.Record.Settings
		}
	}
	if monitor != ours.MonitorPort {
		use := launch.LookMonitorPort(ctx, monitor)
		w.MonitorTaken, w.MonitorOwner = use.Taken && !apply.OurServerHolds(ctx, p.Decisions.Home, userHome, monitor),
			use.Owner
	}
	if port == ours.Port {
		return nil
	}
	use := launch.LookPort(ctx, port)
	w.PortTaken, w.PortOwner = use.Taken && !apply.OurServerHolds(ctx, p.Decisions.Home, userHome, port), use.Owner
	if w.PortTaken && use.Home != "" {
		w.PortWays = fmt.Sprintf("Choose another port with --port, or stop that server: slipway down --home %q.",
			use.Home)
	}
	return nil
}

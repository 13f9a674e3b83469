package apply

import (
	"context"
	"io/fs"
	"os"

	"slipway/installer/build"
	"slipway/installer/neighbor"
	"slipway/installer/plan"
	"slipway/manifests"
)

// Tools is what the workers need beside the plan: where bytes come from and what builds.
type Tools struct {
	UserHome  string
	Deep      bool            // hash every byte of the model instead of believing recorded identities
	Lock      *manifests.Lock // of the model; nil when none is known
	Embedded  fs.FS           // the embedded model's files, nil for a hub model
	Download  func(ctx context.Context, home *os.Root, lock manifests.Lock, report func(Event)) error
	Places    []string      // folders where other tools keep this model
	Source    *build.Source // nil when none is available
	Toolchain *build.Toolchain
	Prebuilt  string           // path of the prebuilt server, "" without one
	Neighbors *neighbor.System // for plans that stop a server that is not ours
}

// Workers makes the worker of every kind of action for a plan.
func Workers(p plan.Plan, t Tools) map[plan.Kind]Worker {
	return map[plan.Kind]Worker{
		plan.HomeAction:     homeWorker{p.Decisions, t.UserHome},
		plan.ModelAction:    modelWorker{p.Decisions, t},
		plan.EngineAction:   engineWorker{p.Decisions, t},
		plan.SettingsAction: settingsWorker{p.Decisions},
		plan.StopsAction:    neighborsWorker{p.Decisions, p.Digest, t.Neighbors},
		plan.LaunchAction:   launchWorker{p.Decisions, t.UserHome},
	}
}

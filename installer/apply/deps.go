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
	UserHome string
	Deep     bool      // hash every byte of the model instead of believing recorded identities
	List     *FileList // of the model
	Embedded fs.FS     // the embedded model's files, nil for a hub model
	// Prove gets the file list from the hub and proves it; nothing is written. nil where the list is in this program.
	Prove     func(ctx context.Context, report func(Event)) (manifests.Lock, error)
	Download  func(ctx context.Context, home *os.Root, lock manifests.Lock, report func(Event)) error
	Places    []string      // folders where other tools keep this model
	Source    *build.Source // nil when none is available
	Toolchain *build.Toolchain
	Prebuilt  string           // path of the prebuilt server, "" without one
	Neighbors *neighbor.System // for plans that stop a server that is not ours
}

// FileList is a model's lock, which the list action may have to get first. The workers of one plan share it.
type FileList struct {
	Lock *manifests.Lock // nil: not known yet
}

// Workers makes the worker of every kind of action for a plan.
func Workers(p plan.Plan, t Tools) map[plan.Kind]Worker {
	return map[plan.Kind]Worker{
		plan.ListAction:     listWorker{p.Decisions, t},
		plan.HomeAction:     homeWorker{p.Decisions, t.UserHome},
		plan.ModelAction:    modelWorker{p.Decisions, t},
		plan.EngineAction:   engineWorker{p.Decisions, t},
		plan.SettingsAction: settingsWorker{p.Decisions},
		plan.StopsAction:    neighborsWorker{p.Decisions, p.Digest, t.Neighbors},
		plan.LaunchAction:   launchWorker{p.Decisions, t.UserHome},
	}
}

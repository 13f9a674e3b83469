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
	Deep      bool // hash every byte of the model instead of believing recorded identities
	Model     Source
	Draft     Source        // of a draft from a repository of its own
	Source    *build.Source // nil when none is available
	Toolchain *build.Toolchain
	Prebuilt  string           // path of the prebuilt server, "" without one
	Neighbors *neighbor.System // for plans that stop a server that is not ours
}

// Source is where the files of the model, or of its draft, come from.
type Source struct {
	List     *FileList
	Embedded fs.FS // the embedded model's files, nil for those of a hub
	// Prove gets the file list from the hub and proves it; nothing is written. nil where the list is in this program.
	Prove    func(ctx context.Context, report func(Event)) (manifests.Lock, error)
	Download func(ctx context.Context, home *os.Root, lock manifests.Lock, report func(Event)) error
	Places   []string // folders where other tools keep these files
	Head     *Head    // of a head that is cut out of shards; nil: the files are taken as they are
}

// FileList is a lock, which the list action may have to get first. The workers of one plan share it.
type FileList struct {
	Lock *manifests.Lock // nil: not known yet
}

// Workers makes the worker of every kind of action for a plan.
func Workers(p plan.Plan, t Tools) map[plan.Kind]Worker {
	workers := map[plan.Kind]Worker{
		plan.HomeAction:     homeWorker{p.Decisions, t.UserHome},
		plan.EngineAction:   engineWorker{p.Decisions, t},
		plan.SettingsAction: settingsWorker{p.Decisions},
		plan.StopsAction:    neighborsWorker{p.Decisions, p.Digest, t.Neighbors},
		plan.LaunchAction:   launchWorker{p.Decisions, t.UserHome},
	}
	for _, part := range p.Decisions.Parts() {
		from := t.Model
		if part.FilesKind == plan.DraftAction {
			from = t.Draft
		}
		workers[part.ListKind] = listWorker{part, from}
		files := filesWorker{part, p.Decisions.Home, t.Deep, from}
		workers[part.FilesKind] = files
		if part.Tensors != "" {
			workers[part.FilesKind] = headWorker{files, &FoundHead{}}
		}
	}
	return workers
}

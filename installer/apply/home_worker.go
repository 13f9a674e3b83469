package apply

import (
	"context"

	"slipway/installer/plan"
)

// homeWorker makes the home. Run has to make it before it can lock and journal, so there is nothing left to do here but
// to complete it and list it.
type homeWorker struct {
	decisions plan.Decisions
	userHome  string
}

func (w homeWorker) Check(_ context.Context, home *Home) (Condition, error) {
	view := LookHome(w.decisions.Home, w.userHome)
	if view.Err != nil {
		return Condition{}, view.Err
	}
	return Condition{Done: view.Ours}, nil
}

func (w homeWorker) Do(_ context.Context, home *Home, _ func(Event)) (Outcome, error) {
	out := Outcome{Items: []Item{{Kind: FileItem, Path: plan.MarkerPath}}}
	for _, name := range plan.Folders {
		out.Items = append(out.Items, Item{Kind: FolderItem, Path: name})
	}
	return out, nil
}

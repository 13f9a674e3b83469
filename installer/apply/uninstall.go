package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"slipway/installer/launch"
	"slipway/installer/plan"
)

// Uninstall stops our server and removes what PlanRemoval listed. The receipts go last, so that a run that was killed
// is finished by the next one. When something is left, the marker stays, so that the home is still known as ours.
func Uninstall(ctx context.Context, home *Home, keepModels bool) (Removal, error) {
	lock, err := home.Lock("slipway uninstall")
	if err != nil {
		return Removal{}, err
	}
	defer lock.Release()
	before, err := PlanRemoval(ctx, home, keepModels)
	if err != nil {
		return before, err
	}
	if _, err := launch.Stop(ctx, home.Root, home.Path); err != nil {
		return Removal{}, err
	}
	r, err := PlanRemoval(ctx, home, keepModels)
	if err != nil {
		return r, err
	}
	listed := map[string]bool{}
	for _, name := range r.Files {
		listed[name] = true
	}
	for _, name := range before.Files { // what stopping the server has removed counts, as it did in the dry run
		if !listed[name] {
			r.Files = append(r.Files, name)
		}
	}
	late := func(name string) bool {
		return strings.HasPrefix(name, "state/")
	}
	for _, last := range []bool{false, true} {
		if last {
			if err := home.Root.Remove(holderPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return r, err
			}
		}
		for _, name := range r.Files {
			if late(name) != last {
				continue
			}
			if ctx.Err() != nil && !last {
				return r, context.Cause(ctx)
			}
			if err := home.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return r, err
			}
		}
		for _, name := range r.Folders {
			if (late(name) || name == "state") != last {
				continue
			}
			if err := home.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotEmpty(err) {
				return r, err
			}
		}
	}
	if len(r.Left) > 0 || keepModels {
		return r, nil
	}
	if err := home.Root.Remove(plan.MarkerPath); err != nil {
		return r, err
	}
	return r, removeHome(home)
}

// removeHome removes the home and the parents that were made for it, as far as they are empty.
func removeHome(home *Home) error {
	if !home.Marker.MadeHome {
		return nil
	}
	if err := os.Remove(home.Path); err != nil {
		return fmt.Errorf("the empty home stays: %w", err)
	}
	for _, parent := range slices.Backward(home.Marker.MadeParents) {
		if !strings.HasPrefix(home.Path, parent+"/") || os.Remove(parent) != nil {
			break
		}
	}
	return nil
}

// RemoveEngine removes an engine that a newer one has replaced: its program and record, if they are what the record
// says, and the folder if that is all it held.
func RemoveEngine(home *Home, id string) error {
	if _, err := EngineOf(home, id); err != nil {
		return nil // not ours to judge any more: it stays and uninstall names it
	}
	w := engineWorker{decisions: plan.Decisions{Engine: plan.Engine{ID: id}}}
	return w.clear(home)
}

func isNotEmpty(err error) bool {
	return strings.Contains(err.Error(), "not empty") || errors.Is(err, fs.ErrExist)
}

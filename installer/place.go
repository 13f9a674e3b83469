package installer

import (
	"context"
	"fmt"

	"slipway/fault"
	"slipway/installer/store"
)

// place decides whether the model is used in place, in a folder of the user's: when that was asked for, and when it is
// used so already. Free space decides nothing: the plan is the same with and without room for a copy, and before and
// after the file list is known.
func (c *choice) place(ctx context.Context, in Input, k known, places []string) error {
	switch {
	case in.InPlace && c.manifest.Embedded:
		return &ChoiceError{fmt.Sprintf("%s is inside this program, so there is no folder in which it could be used "+
			"in place: leave out --in-place", c.manifest.ID)}
	case in.InPlace && c.lock == nil:
		return &NoListError{c.manifest.ID}
	case c.manifest.Embedded || c.lock == nil:
		return nil
	}
	if root := k.root(); root != nil {
		report, err := store.Verify(ctx, root, *c.lock, false)
		if err != nil {
			return err
		}
		if report.OK() && !in.InPlace {
			return nil
		}
		if folder, err := store.Referred(root, *c.lock); err == nil {
			c.useIn(folder)
			return nil
		}
	}
	if !in.InPlace {
		return nil
	}
	folder, whole := store.WholeIn(*c.lock, places)
	if !whole {
		return &ChoiceError{fmt.Sprintf("--in-place: no folder on this machine holds every file of %s and nothing "+
			"else of a model; name one with --model-dir", c.manifest.ID)}
	}
	c.useIn(folder)
	return nil
}

func (c *choice) useIn(folder string) { c.model.InPlace, c.model.DownloadBytes = folder, 0 }

// couldUse is a folder in which the model could be used in place; empty: none is known.
func (c *choice) couldUse(places []string) string {
	var folder string
	switch {
	case c.manifest.Embedded || c.model.InPlace != "":
	case c.lock != nil:
		folder, _ = store.WholeIn(*c.lock, places)
	default:
		folder, _ = store.WeightsIn(places)
	}
	return folder
}

// NoListError: a model is to be used in place, and its file list, which says what has to be there, is not known yet.
type NoListError struct{ Model string }

func (e *NoListError) Error() string {
	return fmt.Sprintf("the file list of %s is not known yet, so no folder can be compared with it", e.Model)
}

// Fault names the model.
func (e *NoListError) Fault() fault.Fault {
	return fault.Fault{Class: fault.NotReady, Step: fault.LockFirst, Args: []string{"--model", e.Model}}
}

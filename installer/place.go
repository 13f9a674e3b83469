package installer

import (
	"context"
	"fmt"

	"slipway/fault"
	"slipway/installer/machine"
	"slipway/installer/store"
)

// place decides whether the model is used in place, in a folder of the user's. It is when that was asked for, when
// it is used so already, and when there is no room for what is missing; a copy in the home, once whole, is preferred.
func (c *choice) place(ctx context.Context, in Input, home string, k known, places []string,
	facts machine.Facts) error {
	switch {
	case in.InPlace && c.manifest.Embedded:
		return &ChoiceError{fmt.Sprintf("%s is inside this program, so there is no folder in which it could be used "+
			"in place: leave out --in-place", c.manifest.ID)}
	case in.InPlace && c.lock == nil:
		return &NoListError{c.manifest.ID}
	case c.manifest.Embedded || c.lock == nil:
		return nil
	}
	missing := c.lock.Files
	if root := k.root(); root != nil {
		report, err := store.Verify(ctx, root, *c.lock, false)
		if err != nil {
			return err
		}
		if report.OK() && !in.InPlace {
			return nil
		}
		if folder, err := store.Referred(root, *c.lock); err == nil {
			c.model.InPlace = folder
			c.model.DownloadBytes = 0
			return nil
		}
		missing = nil
		for _, bad := range report.Bad() {
			f, _ := c.lock.File(bad.Path)
			missing = append(missing, f)
		}
	}
	folder, whole := store.WholeIn(*c.lock, places)
	switch {
	case in.InPlace && !whole:
		return &ChoiceError{fmt.Sprintf("--in-place: no folder on this machine holds every file of %s and nothing "+
			"else of a model; name one with --model-dir", c.manifest.ID)}
	case !whole:
		return nil
	case !in.InPlace:
		var need int64
		var names []string
		for _, f := range missing {
			need += f.Size
			names = append(names, f.Path)
		}
		need -= store.ClonableBytes(ctx, home, *c.lock, names, places)
		if need <= 0 || !facts.DiskFree.Known || need+roomBytes <= facts.DiskFree.Value {
			return nil
		}
	}
	c.model.InPlace = folder
	c.model.DownloadBytes = 0
	return nil
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

// roomBytes stays free beside a copy: the server's build and the margin that plans and downloads keep.
const roomBytes = 256 << 20

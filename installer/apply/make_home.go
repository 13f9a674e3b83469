package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slipway/installer/plan"
	"slipway/installer/process"
)

// MakeHome makes or completes the home and opens it. The home appears with its marker inside or not at all: a new one
// is made beside its place and renamed, an existing empty one gets the marker by rename.
func MakeHome(path, userHome string) (*Home, error) {
	view := LookHome(path, userHome)
	if view.Err != nil {
		return nil, view.Err
	}
	if !view.Exists {
		err := makeNew(path)
		if err != nil && LookHome(path, userHome).Exists {
			err = nil // another run made it at the same moment; the lock tells the two apart
		}
		if err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if _, err := readMarker(root); errors.Is(err, fs.ErrNotExist) {
		if err := writeMarker(root, Marker{Product: "slipway", HomeVersion: HomeVersion,
			MadeParents: []string{}}); err != nil {
			root.Close()
			return nil, err
		}
	}
	for _, name := range plan.Folders {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			root.Close()
			return nil, err
		}
	}
	root.Close()
	return OpenHome(path, userHome)
}

func makeNew(path string) error {
	parents := []string{}
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parents = append([]string{at}, parents...)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	sweepMaking(path)
	made := fmt.Sprintf("%s.making-%d", path, os.Getpid())
	if err := os.Mkdir(made, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(made)
	if err == nil {
		err = writeMarker(root, Marker{Product: "slipway", HomeVersion: HomeVersion, MadeHome: true,
			MadeParents: parents})
		root.Close()
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		os.RemoveAll(made)
		return err
	}
	return nil
}

// sweepMaking removes what runs that were killed while they made this home left beside it: a folder with at most a
// marker in it, named after a process that is gone.
func sweepMaking(path string) {
	left, err := filepath.Glob(quoteGlob(path) + ".making-*")
	if err != nil {
		return
	}
	for _, folder := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(folder, path+".making-"))
		if err != nil {
			continue
		}
		if _, err := process.Observe(pid); !errors.Is(err, process.ErrGone) {
			continue
		}
		os.Remove(filepath.Join(folder, plan.MarkerPath))
		os.Remove(filepath.Join(folder, "."+plan.MarkerPath+".new"))
		os.Remove(folder)
	}
}

// quoteGlob makes a path match itself alone.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

package apply

import (
	"errors"
	"io/fs"
	"os"

	"slipway/fault"
)

// Home is an opened home. Root is the only way to its files; Path is for processes that must be handed a path.
type Home struct {
	Path   string // absolute, symbolic links resolved
	Root   *os.Root
	Marker Marker
}

// HomeError says why a folder cannot be our home. Conflict: something of another kind is where a folder of ours
// should be; otherwise the folder as a whole is refused.
type HomeError struct {
	Path, Why string
	Conflict  bool
}

func (e *HomeError) Error() string { return e.Path + " " + e.Why }

// Fault distinguishes something of another kind in the home from a folder that cannot be the home.
func (e *HomeError) Fault() fault.Fault {
	if e.Conflict {
		return fault.Fault{Class: fault.Stale, Step: fault.MoveAwayFirst}
	}
	return fault.Fault{Class: fault.Human, Step: fault.OtherHome}
}

// ErrNoHome is what a *NoHomeError is.
var ErrNoHome = errors.New("no home")

// NoHomeError says that nothing was ever set up at a path.
type NoHomeError struct{ Path string }

func (e *NoHomeError) Error() string { return "nothing is set up in " + e.Path }

// Is reports whether the target is ErrNoHome.
func (e *NoHomeError) Is(target error) bool { return target == ErrNoHome }

// Fault: see package fault.
func (e *NoHomeError) Fault() fault.Fault {
	return fault.Fault{Class: fault.NotReady, Step: fault.SetUpFirst}
}

// OpenHome opens a home that is ours. A folder in it, other than state, may be missing: the logs were deleted,
// and the server still runs. MakeHome completes it. Errors: ErrNoHome, *HomeError.
func OpenHome(path, userHome string) (*Home, error) {
	view := LookHome(path, userHome)
	return openLooked(view, view.Opens)
}

// OpenMarkedHome opens a home that carries our marker, even if folders are missing: an uninstall that was killed leaves
// such a home, and the next one finishes it. The state folder is made, because the lock lies in it.
func OpenMarkedHome(path, userHome string) (*Home, error) {
	view := LookHome(path, userHome)
	home, err := openLooked(view, view.Marked)
	if err != nil {
		return nil, err
	}
	if err := home.Root.Mkdir("state", 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		home.Close()
		return nil, err
	}
	return home, nil
}

func openLooked(view HomeView, enough bool) (*Home, error) {
	if view.Err != nil {
		return nil, view.Err
	}
	if !enough {
		return nil, &NoHomeError{view.Path}
	}
	root, err := os.OpenRoot(view.Path)
	if err != nil {
		return nil, err
	}
	m, err := readMarker(root)
	if err != nil {
		root.Close()
		return nil, &HomeError{Path: view.Path, Why: err.Error()}
	}
	return &Home{Path: view.Path, Root: root, Marker: m}, nil
}

// Close lets go of the folder.
func (h *Home) Close() error { return h.Root.Close() }

func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/installer/plan"
	"slipway/installer/process"
)

// HomeVersion is the version of the layout below a home. A newer one is refused, an older one is migrated by upgrade.
const HomeVersion = 1

// Home is an opened home. Root is the only way to its files; Path is for processes that must be handed a path.
type Home struct {
	Path   string // absolute, symbolic links resolved
	Root   *os.Root
	Marker Marker
}

// Marker is the content of .slipway-home. MadeHome and MadeParents say what uninstall may remove above the marker.
type Marker struct {
	Product     string   `json:"product"`
	HomeVersion int      `json:"home_version"`
	MadeHome    bool     `json:"made_home"`
	MadeParents []string `json:"made_parents"` // absolute, outermost first
}

// HomeError says why a folder cannot be our home. Conflict: something of another kind stands where a folder of ours
// should be; otherwise the folder as a whole is refused.
type HomeError struct {
	Path, Why string
	Conflict  bool
}

func (e *HomeError) Error() string { return e.Path + " " + e.Why }

// ErrNoHome says that nothing was set up at a path yet.
var ErrNoHome = errors.New("no home was made there yet")

// HomeView is what one read-only look at a home path found.
type HomeView struct {
	Path   string // resolved
	Exists bool
	Marked bool // our marker is there
	Old    bool // its layout is older than this program's: upgrade migrates it
	Ours   bool // marker and all folders are there
	Opens  bool // marker and state are there: what was set up can be read, stopped and removed, whatever else is missing
	Err    *HomeError
	// Closed says why nothing can be written there (or, where there is no home yet, why none can be made), "" when it can.
	Closed string
}

// ResolveHome makes a home path absolute and resolves symbolic links as far as the path exists. "~" and "~/..." mean
// the user's own folder, for shells that pass them on. userHome may be empty.
func ResolveHome(path, userHome string) (string, error) {
	if path == "" {
		return "", &HomeError{Path: "an empty path", Why: "names no home"}
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		if userHome == "" {
			return "", &HomeError{Path: path, Why: "cannot be found: HOME is not set"}
		}
		path = filepath.Join(userHome, strings.TrimPrefix(path, "~"))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for at := abs; ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			if errors.Is(err, syscall.ENOTDIR) {
				return abs, nil // the look at the home says which part is a file
			}
			return "", &HomeError{Path: at, Why: "cannot be followed: " + strings.TrimPrefix(reason(err), "EvalSymlinks: ")}
		}
		if info, lerr := os.Lstat(at); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", &HomeError{Path: at, Why: "is a symbolic link to a place that does not exist"}
		}
		parent := filepath.Dir(at)
		if parent == at {
			return abs, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = parent
	}
}

// LookHome looks and writes nothing. path comes from ResolveHome. userHome is the user's own folder, "" when unknown.
func LookHome(path, userHome string) HomeView {
	view := lookHome(path, userHome)
	if view.Err == nil {
		view.Closed = closed(view)
	}
	return view
}

// closed asks the system whether this user may write in the home and its folders, or make it.
func closed(view HomeView) string {
	places := []string{view.Path}
	if view.Exists {
		for _, name := range plan.Folders {
			places = append(places, filepath.Join(view.Path, name))
		}
	} else {
		for at := view.Path; ; at = filepath.Dir(at) {
			if _, err := os.Lstat(at); err == nil || !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
				places = []string{at}
				break
			}
		}
	}
	for _, place := range places {
		err := unix.Faccessat(unix.AT_FDCWD, place, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EPERM) {
			return fmt.Sprintf("%s cannot be written to: %v", place, err)
		}
	}
	return ""
}

func lookHome(path, userHome string) HomeView {
	view := HomeView{Path: path}
	refuse := func(why string) HomeView {
		view.Err = &HomeError{Path: path, Why: why}
		return view
	}
	if userHome != "" {
		if real, err := filepath.EvalSymlinks(userHome); err == nil {
			userHome = real
		}
		if path == userHome || strings.HasPrefix(userHome+"/", strings.TrimSuffix(path, "/")+"/") {
			return refuse("is your own home folder or holds it: slipway needs a folder of its own")
		}
	}
	if path == "/" {
		return refuse("is the root of the file system: slipway needs a folder of its own")
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return view
	case errors.Is(err, syscall.ENOTDIR):
		view.Err = &HomeError{Path: path, Why: "cannot be made: a part of this path is a file, not a folder", Conflict: true}
		return view
	case err != nil:
		return refuse("cannot be looked at: " + reason(err))
	case !info.IsDir():
		view.Err = &HomeError{Path: path, Why: "is a file, and the home must be a folder", Conflict: true}
		return view
	}
	view.Exists = true
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return refuse(fmt.Sprintf("belongs to another user (uid %d)", st.Uid))
	}
	if info.Mode().Perm()&0o022 != 0 {
		return refuse(fmt.Sprintf("can be written by others (mode %04o): chmod go-w makes it yours alone", info.Mode().Perm()))
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return refuse("cannot be opened: " + reason(err))
	}
	defer root.Close()
	marker, err := readMarker(root)
	if errors.Is(err, fs.ErrNotExist) {
		names, err := readNames(root, ".")
		if err != nil {
			return refuse("cannot be read: " + reason(err))
		}
		// A run that was killed while it put its marker into an empty folder leaves the marker's temporary name.
		names = slices.DeleteFunc(names, func(name string) bool { return isWorkingFile(name, false) })
		if len(names) > 0 {
			return refuse(fmt.Sprintf("holds other things (%s) and not our marker %s", someNames(names), plan.MarkerPath))
		}
		return view
	}
	if err != nil {
		return refuse(err.Error())
	}
	view.Marked = true
	if marker.HomeVersion < HomeVersion {
		view.Old = true
		return refuse(fmt.Sprintf("was made by an older slipway (layout %d, this program works with %d): slipway upgrade brings it up to date",
			marker.HomeVersion, HomeVersion))
	}
	view.Ours, view.Opens = true, true
	for _, name := range plan.Folders {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			view.Ours = false
			if name == "state" {
				view.Opens = false
			}
		case err != nil:
			return refuse("cannot be read: " + reason(err))
		case !info.IsDir():
			view.Ours, view.Opens = false, false
			kind := "a file"
			if info.Mode()&fs.ModeSymlink != 0 {
				kind = "a symbolic link"
			}
			view.Err = &HomeError{Path: filepath.Join(path, name), Why: "is " + kind + ", and a folder of slipway must be there", Conflict: true}
			return view
		}
	}
	return view
}

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
		if err := writeMarker(root, Marker{Product: "slipway", HomeVersion: HomeVersion, MadeParents: []string{}}); err != nil {
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

// OpenHome opens a home that is ours. A folder in it, other than state, may be missing: somebody threw the logs away, and
// the server still runs. MakeHome completes it. Errors: ErrNoHome, *HomeError.
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
		return nil, fmt.Errorf("%s: %w", view.Path, ErrNoHome)
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
		err = writeMarker(root, Marker{Product: "slipway", HomeVersion: HomeVersion, MadeHome: true, MadeParents: parents})
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

func writeMarker(root *os.Root, m Marker) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(root, plan.MarkerPath, append(data, '\n'), 0o600)
}

func readMarker(root *os.Root) (Marker, error) {
	data, err := root.ReadFile(plan.MarkerPath)
	if err != nil {
		return Marker{}, err
	}
	var m Marker
	if err := json.Unmarshal(data, &m); err != nil || m.Product != "slipway" {
		return Marker{}, fmt.Errorf("has a marker %s that slipway did not write", plan.MarkerPath)
	}
	if m.HomeVersion > HomeVersion {
		return Marker{}, fmt.Errorf("was made by a newer slipway (layout %d, this program knows %d)", m.HomeVersion, HomeVersion)
	}
	return m, nil
}

func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// someNames quotes at most three names: they are other people's and may hold anything.
func someNames(names []string) string {
	var quoted []string
	for i, name := range names {
		if i == 3 {
			quoted = append(quoted, "...")
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}

// reason is the system's word without the path, which the sentence names already.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

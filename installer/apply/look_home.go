package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/installer/plan"
	"slipway/termtext"
)

// HomeView is what one read-only look at a home path found.
type HomeView struct {
	Path   string // resolved
	Exists bool
	Marked bool // our marker is there
	Old    bool // its layout is older than this program's: upgrade migrates it
	Ours   bool // marker and all folders are there
	// marker and state are there: what was set up can be read, stopped and removed, whatever else is missing
	Opens bool
	Err   *HomeError
	// Closed says why nothing can be written there (or, where there is no home yet, why none can be made), "" when it
	// can.
	Closed string
}

// ResolveHome makes a home path absolute and resolves symbolic links as far as the path exists. "~" and "~/..." mean
// the user's own folder, for shells that pass them on. userHome may be empty.
func ResolveHome(path, userHome string) (string, error) {
	if path == "" {
		return "", &HomeError{Path: "an empty path", Why: "names no home"}
	}
	if !termtext.IsLine(path) {
		return "", &HomeError{Path: termtext.Line(path), Why: "holds a line break or another control character"}
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
			return "", &HomeError{Path: at, Why: "cannot be followed: " +
				strings.TrimPrefix(reason(err), "EvalSymlinks: ")}
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
		view.Err = &HomeError{Path: path, Why: "cannot be made: a part of this path is a file, not a folder",
			Conflict: true}
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
		return refuse(fmt.Sprintf("can be written by others (mode %04o): chmod go-w makes it yours alone",
			info.Mode().Perm()))
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
			return refuse(fmt.Sprintf("holds other things (%s) and not our marker %s", someNames(names),
				plan.MarkerPath))
		}
		return view
	}
	if err != nil {
		return refuse(err.Error())
	}
	view.Marked = true
	if marker.HomeVersion < HomeVersion {
		view.Old = true
		return refuse(fmt.Sprintf("was made by an older slipway (layout %d, this program works with %d): slipway "+
			"upgrade brings it up to date",
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
			view.Err = &HomeError{Path: filepath.Join(path, name), Why: "is " + kind + ", and a folder of slipway " +
				"must be there",
				Conflict: true}
			return view
		}
	}
	return view
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

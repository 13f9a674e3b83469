package record

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"slipway/fault"
)

// UnsafeError says that others could have put something in the folder of records and restorer, so that nothing there is
// trusted or run.
type UnsafeError struct {
	Path string
	Why  string
	Next string // what a person can do
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s, so slipway trusts and runs nothing in it; %s", e.Path, e.Why, e.Next)
}

// Fault: see package fault.
func (e *UnsafeError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Refused, Step: fault.ThenRepeat}
}

// requirePrivate returns an error where others could plant a record or a program: home and state belong to this user
// and no other user can write there, and the folder itself is 0700. None is a symbolic link. A missing one is
// fs.ErrNotExist.
func (f Folder) requirePrivate(home *os.Root) error {
	for _, level := range []struct {
		name   string
		forbid fs.FileMode
	}{{".", 0o022}, {filepath.Dir(inHome), 0o022}, {inHome, 0o077}} {
		info, err := home.Lstat(level.name)
		if err != nil {
			return err
		}
		path := filepath.Join(f.Home, filepath.FromSlash(level.name))
		look := fmt.Sprintf("look who put it there, and move it away: mv %q %q", path, path+".aside")
		switch {
		case !info.IsDir():
			return &UnsafeError{Path: path, Why: "is no folder", Next: look}
		case owner(info) != os.Getuid():
			return &UnsafeError{Path: path, Why: "belongs to another user", Next: look}
		case info.Mode().Perm()&level.forbid != 0:
			mode := "go-w"
			if level.forbid == 0o077 {
				mode = "700"
			}
			return &UnsafeError{Path: path, Why: fmt.Sprintf("is open to other users (mode %04o)", info.Mode().Perm()),
				Next: fmt.Sprintf("look what is in it, then close it: chmod %s %q", mode, path)}
		}
	}
	return nil
}

func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

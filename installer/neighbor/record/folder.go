package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/atomicfile"

	"golang.org/x/sys/unix"
)

// Folder holds records, their locks and the holds: state/neighbors in slipway's home. It is entered by os.Root,
// so that a planted symbolic link leads nowhere.
type Folder struct{ Home string }

const inHome = "state/neighbors"

// maxRecordBytes bounds what is read: arguments and environment of a process fit in the kernel's 2 MiB.
const maxRecordBytes = 4 << 20

// Path is the path of a file in the folder.
func (f Folder) Path(name string) string {
	return filepath.Join(f.Home, filepath.FromSlash(inHome), name)
}

// open enters the folder. With create it is made first; without, a missing folder is fs.ErrNotExist. Errors:
// *UnsafeError where others could have put something there.
func (f Folder) open(create bool) (*os.Root, error) {
	home, err := os.OpenRoot(f.Home)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if create {
		if err := home.MkdirAll(inHome, 0o700); err != nil {
			return nil, err
		}
	}
	if err := f.requirePrivate(home); err != nil {
		return nil, err
	}
	return home.OpenRoot(inHome)
}

// Write writes the record atomically and synced before it returns.
func (f Folder) Write(r Record) error {
	if err := r.validate(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	root, err := f.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	return replace(root, r.ID+".json", append(b, '\n'))
}

// Update is Write for a record that still exists: a deleted one (its neighbour runs again) stays deleted.
// Errors: fs.ErrNotExist.
func (f Folder) Update(r Record) error {
	root, err := f.open(false)
	if err != nil {
		return err
	}
	_, err = root.Lstat(r.ID + ".json")
	root.Close()
	if err != nil {
		return err
	}
	return f.Write(r)
}

// replace writes a file under another name, syncs it, renames it and syncs the folder.
func replace(root *os.Root, name string, b []byte) error {
	return atomicfile.ReplaceVia(root, fmt.Sprintf(".%s.%d", name, os.Getpid()), name, b, 0o600)
}

// Read returns one record. Errors: fs.ErrNotExist, *InvalidError.
func (f Folder) Read(id string) (Record, error) {
	root, err := f.open(false)
	if err != nil {
		return Record{}, err
	}
	defer root.Close()
	return readRecord(root, id)
}

func readRecord(root *os.Root, id string) (Record, error) {
	if !validID(id) {
		return Record{}, &InvalidError{ID: id, Why: "the ID is not a plain name"}
	}
	info, err := root.Lstat(id + ".json")
	switch {
	case err != nil:
		return Record{}, err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0:
		return Record{}, &InvalidError{ID: id, Why: "others can write this file, so nothing in it is run"}
	case owner(info) != os.Getuid():
		return Record{}, &InvalidError{ID: id, Why: "the file belongs to another user, so nothing in it is run"}
	case info.Size() > maxRecordBytes:
		return Record{}, &InvalidError{ID: id, Why: "the file is too large"}
	}
	b, err := root.ReadFile(id + ".json")
	if err != nil {
		return Record{}, err
	}
	return Parse(id, b)
}

// List returns all records, oldest first, and an error for each file that is not one. A missing folder is no record.
func (f Folder) List() ([]Record, []error) {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	defer root.Close()
	folder, err := root.Open(".")
	if err != nil {
		return nil, []error{err}
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, []error{err}
	}
	var records []Record
	var damaged []error
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		r, err := readRecord(root, id)
		switch {
		case errors.Is(err, fs.ErrNotExist): // restored in between
		case err != nil:
			damaged = append(damaged, err)
		default:
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return a.At.Compare(b.At) })
	return records, damaged
}

// Delete removes the record, synced, and then its lock file. The order is what makes a restore happen once: whoever
// opens a fresh lock afterwards finds no record.
func (f Folder) Delete(id string) error {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(id + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := atomicfile.SyncFolder(root, "."); err != nil {
		return err
	}
	for _, lock := range []string{LockName(id), WatchName(id)} {
		if err := root.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// LockName and WatchName are the lock files of a record: the first is held by the restored neighbour, the second by the
// record's watcher.
func LockName(id string) string  { return "lock-" + id }
func WatchName(id string) string { return "watch-" + id }

// Lock takes the exclusive lock of the given name (LockName or WatchName) without waiting. The lock lives in the open
// file: it is inherited by whatever the holder executes, and free when the last of them has ended. Errors: ErrHeld.
func (f Folder) Lock(name string) (*os.File, error) {
	root, err := f.open(true)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for try := range 5 {
		file, err := root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			file.Close()
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return nil, err
			}
			if try == 4 {
				return nil, ErrHeld
			}
			time.Sleep(3 * time.Millisecond) // it may only be Held, which looks for an instant
			continue
		}
		// The file may have been deleted between opening and locking: then this lock guards nothing.
		opened, err := file.Stat()
		if err == nil {
			if now, err := root.Lstat(name); err == nil && os.SameFile(opened, now) {
				return file, nil
			}
		}
		file.Close()
	}
	return nil, ErrHeld
}

// Held reports whether the lock is held, without creating it.
func (f Folder) Held(name string) (bool, error) {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer root.Close()
	file, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	// A shared attempt: two lookers do not take each other for a holder.
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

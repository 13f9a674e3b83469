package store

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// cloneInto makes the partial file a clone of src (APFS). A clone needs a free name, so the old partial file goes; when
// cloning fails an empty one takes its place. An error means only that this volume cannot.
func cloneInto(home *os.Root, src *os.File, name string, dst *os.File) (*os.File, error) {
	dir, err := home.Open(path.Dir(name))
	if err != nil {
		return dst, err
	}
	defer dir.Close()
	if err := home.Remove(name); err != nil {
		return dst, err
	}
	failed := unix.Fclonefileat(int(src.Fd()), int(dir.Fd()), path.Base(name), 0)
	if failed == nil {
		failed = home.Chmod(name, 0o644) // a clone has the source's mode, which may not let us write
	}
	opened, err := openData(home, name)
	if err != nil {
		return dst, err
	}
	dst.Close()
	return opened, failed
}

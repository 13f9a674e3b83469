package store

import (
	"os"
	"path"

	"golang.org/x/sys/unix"

	"slipway/manifests"
)

// spaceMarginBytes stays free: journals, logs, and a system that needs room to breathe.
const spaceMarginBytes = 64 << 20

// FreeBytes is what the volume of the home offers to this user. Purgeable space of the Mac is not counted.
func FreeBytes(home *os.Root) (int64, error) {
	dir, err := home.Open(".")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}

// RequireSpace is a *NoSpaceError when needed bytes, less what partial files of these files hold already, do not fit
// with a margin. Where the volume does not say, it is nil: writes will show.
func RequireSpace(home *os.Root, files []manifests.File, needed int64) error {
	free, err := FreeBytes(home)
	if err != nil {
		return nil
	}
	for _, f := range files {
		if info, err := home.Stat(path.Join(partialDir, f.SHA256.Hex()+".part")); err == nil {
			needed -= allocatedBytes(info)
		}
	}
	if needed > 0 && needed+min(spaceMarginBytes, needed/8) > free {
		return &NoSpaceError{Path: ModelsDir, NeededBytes: needed, FreeBytes: free}
	}
	return nil
}

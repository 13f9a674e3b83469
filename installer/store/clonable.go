package store

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"slipway/manifests"
)

// ClonableBytes is how much of the wanted files need no room in a home at homePath, because a file of the right size in
// one of the folders can be cloned there: the same volume, of a kind that shares blocks. Sizes only are looked at. The
// home need not exist.
func ClonableBytes(ctx context.Context, homePath string, lock manifests.Lock, wanted []string, folders []string) int64 {
	volume, ok := volumeOf(homePath)
	if !ok {
		return 0
	}
	want := map[string]bool{}
	for _, name := range wanted {
		want[name] = true
	}
	found, _ := Find(ctx, lock, folders)
	var n int64
	for _, c := range found {
		if !want[c.File] {
			continue
		}
		if at, ok := volumeOf(c.Path); ok && at == volume {
			f, _ := lock.File(c.File)
			n += f.Size
			want[c.File] = false
		}
	}
	return n
}

// volumeOf names the volume of the nearest folder that exists; ok is false where it cannot share blocks.
func volumeOf(name string) (unix.Fsid, bool) {
	for {
		var stat unix.Statfs_t
		if _, err := os.Stat(name); err == nil {
			if unix.Statfs(name, &stat) != nil {
				return unix.Fsid{}, false
			}
			return stat.Fsid, sharesBlocks(stat)
		}
		parent := filepath.Dir(name)
		if parent == name {
			return unix.Fsid{}, false
		}
		name = parent
	}
}

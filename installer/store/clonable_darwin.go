package store

import "golang.org/x/sys/unix"

func sharesBlocks(stat unix.Statfs_t) bool {
	return unix.ByteSliceToString(stat.Fstypename[:]) == "apfs"
}

package store

import "golang.org/x/sys/unix"

// File systems whose files can share blocks (FICLONE).
const (
	btrfsMagic = 0x9123683e
	xfsMagic   = 0x58465342
)

func sharesBlocks(stat unix.Statfs_t) bool {
	return uint32(stat.Type) == btrfsMagic || uint32(stat.Type) == xfsMagic
}

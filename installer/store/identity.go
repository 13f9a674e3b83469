package store

import (
	"io/fs"
	"syscall"
)

// Identity is what a file had when its hash was right. If all three are the same later, the bytes are taken as
// unchanged by the fast check; only the deep check looks at the bytes. The device number is left out: it may change
// with a reboot. So is the change time: back-up tools touch it.
type Identity struct {
	Inode   uint64 `json:"inode"`
	Bytes   int64  `json:"bytes"`
	MtimeNs int64  `json:"mtime_ns"`
}

// identityOf reads the identity of an open or named regular file from its FileInfo.
func identityOf(info fs.FileInfo) Identity {
	id := Identity{Bytes: info.Size(), MtimeNs: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Inode = stat.Ino
	}
	return id
}

// allocatedBytes is what a file takes on its volume, at most its size.
func allocatedBytes(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(stat.Blocks*512, info.Size())
	}
	return 0
}

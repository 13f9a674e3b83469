package store

import (
	"io/fs"
	"syscall"
)

// changedNs is when the file's bytes, mode or name last changed, in nanoseconds since 1970; no program can set it.
func changedNs(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return info.ModTime().UnixNano()
}

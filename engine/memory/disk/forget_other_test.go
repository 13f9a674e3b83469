//go:build !linux

package disk

import "os"

// forget can do nothing here: a system without posix_fadvise keeps what it read, and both benchmarks read from memory.
func forget(f *os.File) error { return nil }

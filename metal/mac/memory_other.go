//go:build !darwin

package mac

// ReadMemory reports that memory is never short: only macOS is asked.
func ReadMemory() (Memory, error) { return Memory{}, nil }

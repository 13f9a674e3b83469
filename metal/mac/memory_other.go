//go:build !darwin

package mac

// ReadMemory finds memory never short: only macOS is asked.
func ReadMemory() (Memory, error) { return Memory{}, nil }

package mac

import "golang.org/x/sys/unix"

// ReadMemory asks the system. It takes some microseconds and is safe from any goroutine.
func ReadMemory() (Memory, error) {
	level, err := unix.SysctlUint32("kern.memorystatus_vm_pressure_level")
	if err != nil {
		return Memory{}, err
	}
	percent, err := unix.SysctlUint32("kern.memorystatus_level")
	if err != nil {
		return Memory{}, err
	}
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Memory{}, err
	}
	return memoryOf(level, percent, total)
}

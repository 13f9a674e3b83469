package mac

import "fmt"

// Pressure is how short of memory the machine is.
type Pressure int

const (
	Normal   Pressure = iota
	Warning           // programs should release what they can make again
	Critical          // macOS is about to end programs
)

func (p Pressure) String() string { return [...]string{"normal", "warning", "critical"}[p] }

// Memory is the state of the machine's memory as the system reports it.
type Memory struct {
	Pressure              Pressure
	FreeBytes, TotalBytes int64
}

// memoryOf reads macOS's numbers: kern.memorystatus_vm_pressure_level (1, 2, 4), kern.memorystatus_level (percent of
// memory that is available), hw.memsize.
func memoryOf(level, percent uint32, total uint64) (Memory, error) {
	m := Memory{TotalBytes: int64(total), FreeBytes: int64(total) / 100 * int64(min(percent, 100))}
	switch level {
	case 1:
	case 2:
		m.Pressure = Warning
	case 4:
		m.Pressure = Critical
	default:
		return m, fmt.Errorf("macOS names a memory pressure of %d; 1, 2 and 4 are known", level)
	}
	return m, nil
}

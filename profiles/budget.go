package profiles

import (
	"fmt"

	"slipway/units"
)

// Machine is what sizing needs to know of a machine. RAMBytes is physical memory, or less where a container is held to
// less. CapBytes is Metal's recommended working set, 0 where there is no Metal; CapEstimated says that it was worked
// estimated by share because the device was not asked. Mac only chooses words.
type Machine struct {
	RAMBytes     int64
	CapBytes     int64
	CapEstimated bool
	Mac          bool
}

// Limit names what binds a window.
type Limit string

const (
	LimitMetal         Limit = "metal-working-set"
	LimitRAM           Limit = "memory-less-reserve"
	LimitUserBudget    Limit = "asked-budget"
	LimitProfileBudget Limit = "profile-budget"
	LimitModelWindow   Limit = "model-window"
	LimitProfileWindow Limit = "profile-window"
)

// OSReserveBytes is what is left to the system and to other programs: a quarter of the memory up to 16 GiB (4 GiB
// there), then a sixth, at most 8 GiB. Peers use 4 to 8 GiB in steps; this has no step, so that more memory never
// gives a smaller window. Rounded up to 1 MiB.
func OSReserveBytes(ramBytes int64) int64 {
	return roundUp(min(8*gib, max(ramBytes/6, min(4*gib, ramBytes/4))), mib)
}

// budget is the least of the limits on memory, and which one that is.
type budget struct {
	Bytes int64
	Limit Limit
	notes []string // limits that were asked for and cannot be had
}

func (m Machine) budget(profileBytes, userBytes int64) budget {
	b := budget{Bytes: m.RAMBytes - OSReserveBytes(m.RAMBytes), Limit: LimitRAM}
	if m.CapBytes > 0 && m.CapBytes <= b.Bytes {
		b.Bytes, b.Limit = m.CapBytes, LimitMetal
	}
	machineBytes, machineLimit := b.Bytes, b.Limit
	asked := func(bytes int64, limit Limit, whose string) {
		switch {
		case bytes <= 0:
		case bytes > machineBytes:
			b.notes = append(b.notes, fmt.Sprintf("%s of %s is more than there is: %s.", whose, units.GiBAndGB(bytes),
				m.phrase(machineLimit, machineBytes)))
		case bytes < b.Bytes:
			b.Bytes, b.Limit = bytes, limit
		}
	}
	asked(profileBytes, LimitProfileBudget, "The profile's budget")
	asked(userBytes, LimitUserBudget, "The budget that was asked for")
	return b
}

// phrase is a limit on memory as a clause.
func (m Machine) phrase(limit Limit, bytes int64) string {
	this := "this machine"
	if m.Mac {
		this = "this Mac"
	}
	switch limit {
	case LimitMetal:
		if m.CapEstimated {
			return fmt.Sprintf("Metal may probably use %s of %s's %s (an estimate; the device was not asked)",
				units.GiB(bytes), this, units.GiB(m.RAMBytes))
		}
		return fmt.Sprintf("Metal may use %s of %s's %s", units.GiB(bytes), this, units.GiB(m.RAMBytes))
	case LimitRAM:
		return fmt.Sprintf("%s of %s's %s are free when %s are reserved for the system", units.GiB(bytes), this,
			units.GiB(m.RAMBytes), units.GiB(OSReserveBytes(m.RAMBytes)))
	case LimitUserBudget:
		return fmt.Sprintf("the budget that was asked for is %s", units.GiBAndGB(bytes))
	case LimitProfileBudget:
		return fmt.Sprintf("the profile's budget is %s", units.GiBAndGB(bytes))
	}
	panic("profiles: " + string(limit) + " is no limit on memory")
}

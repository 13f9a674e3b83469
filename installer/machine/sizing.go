package machine

import "slipway/profiles"

// Sizing is the machine as sizing sees it: a container's limit counts as its memory. RAMBytes 0: not known, and sizing
// refuses.
func (f Facts) Sizing() profiles.Machine {
	m := profiles.Machine{RAMBytes: f.RAM.Value, Mac: f.OS.Value == "darwin"}
	if f.MemoryLimit.Known && f.MemoryLimit.Value > 0 {
		m.RAMBytes = min(m.RAMBytes, f.MemoryLimit.Value)
	}
	if f.WorkingSet.Known {
		m.CapBytes, m.CapEstimated = f.WorkingSet.Value, !f.WorkingSet.Certain
	}
	return m
}

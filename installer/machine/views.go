package machine

import (
	"slipway/checks"
	"slipway/profiles"
)

// Sizing is the machine as package profiles sees it. Memory is what a container leaves of it. RAMBytes 0: not known,
// and sizing refuses.
func (f Facts) Sizing() profiles.Machine {
	m := profiles.Machine{RAMBytes: f.RAM.Value, Mac: f.OS.Value == "darwin"}
	if f.MemoryLimit.Known && f.MemoryLimit.Value < m.RAMBytes {
		m.RAMBytes = f.MemoryLimit.Value
	}
	if f.AppleSilicon() && f.WorkingSet.Known {
		m.CapBytes, m.CapEstimated = f.WorkingSet.Value, !f.WorkingSet.Certain
	}
	return m
}

// Checks is the machine as package checks sees it; program is the path that a quarantine was looked for on.
func (f Facts) Checks(program string) checks.Machine {
	m := checks.Machine{
		OS: f.OS.Value, Arch: f.Arch.Value, Version: value(f.Version), System: value(f.System), Translated: value(f.Translated),
		RAMBytes: value(f.RAM), LimitBytes: value(f.MemoryLimit), AvailableBytes: value(f.MemoryAvailable), Pressure: value(f.Pressure),
		WorkingSetBytes: value(f.WorkingSet), WorkingSetCertain: f.WorkingSet.Certain,
		Power: value(f.Power), BatteryPercent: value(f.Battery), LowPower: value(f.LowPower), SleepMinutes: value(f.SleepMinutes),
		Home: f.Home, FileSystem: value(f.FileSystem), FreeBytes: value(f.DiskFree), PurgeableBytes: value(f.Purgeable),
		Program: program, Quarantined: value(f.Quarantined), DevTools: value(f.DevTools),
	}
	if t, ok := f.Tool("go"); ok {
		m.GoPath, m.GoVersion = value(t.Path), value(t.Version)
	}
	for _, a := range f.Access {
		m.Access = append(m.Access, checks.Access{Path: a.Path, Outcome: value(a.Fact)})
	}
	for _, p := range f.Proxies {
		m.Proxies = append(m.Proxies, p.Variable+"="+p.Value)
	}
	return m
}

func value[T any](f Fact[T]) checks.Known[T] { return checks.Known[T]{Value: f.Value, Known: f.Known} }

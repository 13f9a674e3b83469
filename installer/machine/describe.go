package machine

import (
	"fmt"
	"strings"

	"slipway/units"
)

// Line is one fact for people. Sure is false where the value is an estimate or not known.
type Line struct {
	Label string `json:"label"`
	Value string `json:"value"`
	How   string `json:"how"`
	Sure  bool   `json:"sure"`
}

// Describe gives the facts in reading order, all of them, also what is not known and why.
func (f Facts) Describe() []Line {
	lines := []Line{
		line("system", join(f.System, f.Version), func(s string) string { return s }),
		line("build", f.Build, plain[string]),
		line("processor", f.Chip, plain[string]),
		line("architecture", f.Arch, plain[string]),
		line("translated by Rosetta", f.Translated, yesNo),
		line("model", f.Model, plain[string]),
		line("generation", f.Generation, plain[int]),
		line("cores", f.CoreLevels, func(levels []CoreLevel) string {
			var parts []string
			for _, l := range levels {
				parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", l.Cores, strings.ToLower(l.Name))))
			}
			return strings.Join(parts, " + ")
		}),
		line("GPU cores", f.GPUCores, plain[int]),
		line("memory", f.RAM, units.GiB),
		line("memory limit", f.MemoryLimit, units.GiB),
		line("memory available", f.MemoryAvailable, units.GiB),
		line("memory pressure", f.Pressure, plain[string]),
		line("Metal device", f.MetalDevice, plain[string]),
		line("Metal may use", f.WorkingSet, units.GiB),
		line("largest Metal buffer", f.MaxBuffer, units.GiB),
		line("wired limit", f.WiredLimit, func(n int64) string {
			if n == 0 {
				return "not set"
			}
			return units.GiB(n)
		}),
		line("power", f.Power, plain[string]),
		line("battery", f.Battery, func(n int) string { return fmt.Sprintf("%d %%", n) }),
		line("low power mode", f.LowPower, yesNo),
		line("sleep", f.SleepMinutes, func(n int) string {
			if n == 0 {
				return "never"
			}
			return fmt.Sprintf("after %d min", n)
		}),
		line("file system", f.FileSystem, plain[string]),
		line("disk free", f.DiskFree, units.Short),
		line("disk purgeable", f.Purgeable, units.Short),
		line("developer tools", f.DevTools, orNone),
		line("quarantined", f.Quarantined, yesNo),
		line("boot", f.Boot, plain[string]),
	}
	for _, t := range f.Tools {
		lines = append(lines, line(t.Name, t.Path, orNone))
		if t.Path.Value != "" {
			lines = append(lines, line(t.Name+" version", t.Version, plain[string]))
		}
	}
	for _, a := range f.Access {
		lines = append(lines, line("reading "+a.Path, a.Fact, plain[string]))
	}
	for _, p := range f.Proxies {
		lines = append(lines, Line{p.Variable, p.Value, "environment", true})
	}
	return lines
}

func line[T any](label string, f Fact[T], word func(T) string) Line {
	if !f.Known {
		return Line{label, "not known", f.How, false}
	}
	value := word(f.Value)
	if !f.Certain {
		switch any(f.Value).(type) {
		case int, int64:
			value = "about " + value
		default:
			value = "probably " + value
		}
	}
	return Line{label, value, f.How, f.Certain}
}

func join(name, version Fact[string]) Fact[string] {
	if !version.Known {
		return name
	}
	return Fact[string]{strings.TrimSpace(name.Value + " " + version.Value), name.Known, name.Certain &&
		version.Certain, version.How}
}

func plain[T any](v T) string { return fmt.Sprint(v) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

package machine

import (
	"strconv"
	"strings"
)

// observeLinux reads Linux's files.
func observeLinux(src Sources, f *Facts, cores int) {
	why := "only macOS knows it"
	f.Translated = known(false, "Rosetta exists only on macOS")
	f.System, f.Version = linuxRelease(src)
	f.Build = text(src, "kernel.osrelease")
	f.Boot = text(src, "kernel.random.boot_id")
	f.Model, f.Generation, f.GPUCores = unknown[string](why), unknown[int](why), unknown[int](why)
	f.Chip = linuxChip(src)
	f.CoreLevels = known([]CoreLevel{{"", cores}}, "usable by this process")
	f.PerformanceCores = known(cores, "usable by this process")
	f.EfficiencyCores = unknown[int]("Linux does not report kinds of cores everywhere")
	f.RAM, f.MemoryAvailable = linuxMemory(src)
	f.MemoryLimit = memoryLimit(src)
	f.Pressure = linuxPressure(src)
	f.Power, f.Battery = linuxPower(src)
	f.LowPower, f.SleepMinutes = unknown[bool](why), unknown[int](why)
	f.DevTools = unknown[string]("Command Line Tools exist only on macOS")
}

func linuxRelease(src Sources) (name, version Fact[string]) {
	data, err := src.ReadFile("/etc/os-release")
	if err != nil {
		return unknown[string](err.Error()), unknown[string](err.Error())
	}
	field := func(key string) Fact[string] {
		for line := range strings.Lines(string(data)) {
			k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
			if v = strings.Trim(v, `"'`); ok && k == key && v != "" {
				return known(v, "/etc/os-release")
			}
		}
		return unknown[string]("/etc/os-release has no " + key)
	}
	return field("NAME"), field("VERSION_ID")
}

func linuxChip(src Sources) Fact[string] {
	data, err := src.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknown[string](err.Error())
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == "model name" {
			return known(strings.TrimSpace(value), "/proc/cpuinfo")
		}
	}
	return unknown[string]("/proc/cpuinfo has no model name")
}

func linuxMemory(src Sources) (total, available Fact[int64]) {
	data, err := src.ReadFile("/proc/meminfo")
	if err != nil {
		return unknown[int64](err.Error()), unknown[int64](err.Error())
	}
	total, available = unknown[int64]("/proc/meminfo has no MemTotal"),
		unknown[int64]("/proc/meminfo has no MemAvailable")
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			total = known(kib<<10, "/proc/meminfo")
		case "MemAvailable:":
			available = guessed(kib<<10, "/proc/meminfo")
		}
	}
	return total, available
}

// memoryLimit is a container's limit, version 2 or 1 of control groups. Version 1 writes a huge number for none.
func memoryLimit(src Sources) Fact[int64] {
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := src.ReadFile(path)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err == nil && n > 0 && n < 1<<50 {
			return known(n, path)
		}
	}
	return unknown[int64]("no control group sets one")
}

// linuxPressure reads pressure stall information: the share of the last 10 seconds in which some task waited for
// memory. The borders 10 and 40 % are ours.
func linuxPressure(src Sources) Fact[string] {
	data, err := src.ReadFile("/proc/pressure/memory")
	if err != nil {
		return unknown[string](err.Error())
	}
	for field := range strings.FieldsSeq(string(data)) {
		value, ok := strings.CutPrefix(field, "avg10=")
		if !ok {
			continue
		}
		share, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
			return unknown[string]("/proc/pressure/memory is not readable")
		case share >= 40:
			return guessed("critical", "/proc/pressure/memory")
		case share >= 10:
			return guessed("warning", "/proc/pressure/memory")
		}
		return guessed("normal", "/proc/pressure/memory")
	}
	return unknown[string]("/proc/pressure/memory is empty")
}

func linuxPower(src Sources) (Fact[string], Fact[int]) {
	const folder = "/sys/class/power_supply/"
	power, battery := unknown[string]("no power supply is reported"), unknown[int]("no battery is reported")
	for _, name := range []string{"AC", "AC0", "ACAD", "ADP0", "ADP1"} {
		data, err := src.ReadFile(folder + name + "/online")
		if err != nil {
			continue
		}
		power = known(map[bool]string{true: "ac", false: "battery"}[strings.TrimSpace(string(data)) == "1"],
			folder+name)
		break
	}
	for _, name := range []string{"BAT0", "BAT1", "BATT"} {
		data, err := src.ReadFile(folder + name + "/capacity")
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			battery = known(n, folder+name)
		}
		break
	}
	return power, battery
}

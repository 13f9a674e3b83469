package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// observeMac reads what only macOS has. It returns system_profiler's answer, which covers the disk too.
func observeMac(ctx context.Context, src Sources, f *Facts) profiled {
	f.Translated = known(false, "sysctl sysctl.proc_translated")
	if value, err := src.Int("sysctl.proc_translated"); err != nil {
		f.Translated = known(false, "no sysctl sysctl.proc_translated, so no Rosetta")
	} else if value == 1 {
		f.Translated = known(true, "sysctl sysctl.proc_translated")
		f.Arch = known("arm64", "translated by Rosetta, which runs only there")
	}
	macVersion(ctx, src, f)
	f.Boot = text(src, "kern.bootsessionuuid")
	f.Model = text(src, "hw.model")
	f.Chip = text(src, "machdep.cpu.brand_string")
	if f.Translated.Value && f.Chip.Known && !strings.HasPrefix(f.Chip.Value, "Apple") {
		f.Chip.Certain, f.Chip.How = false, f.Chip.How+", under Rosetta"
	}
	f.Generation = generation(f.Chip)
	macCores(src, f)
	f.RAM = number(src, "hw.memsize")
	f.MemoryLimit = unknown[int64]("macOS holds no program to less")
	f.MemoryAvailable = macAvailable(ctx, src)
	f.Pressure = macPressure(src)
	report := profile(ctx, src)
	f.GPUCores = gpuCores(report)
	macPower(ctx, src, f)
	f.DevTools = developerFolder(ctx, src)
	return report
}

func text(src Sources, name string) Fact[string] {
	value, err := src.Text(name)
	if err != nil || value == "" {
		return unknown[string]("sysctl " + name + " does not answer")
	}
	return known(value, "sysctl "+name)
}

func number(src Sources, name string) Fact[int64] {
	value, err := src.Int(name)
	if err != nil || value <= 0 {
		return unknown[int64]("sysctl " + name + " does not answer")
	}
	return known(value, "sysctl "+name)
}

func macVersion(ctx context.Context, src Sources, f *Facts) {
	out, err := src.Run(ctx, "/usr/bin/sw_vers")
	if err != nil {
		f.System = known("macOS", "built for it")
		f.Version, f.Build = unknown[string](err.Error()), unknown[string](err.Error())
		return
	}
	field := func(name string) Fact[string] {
		for line := range strings.Lines(string(out)) {
			key, value, ok := strings.Cut(line, ":")
			if ok && strings.TrimSpace(key) == name && strings.TrimSpace(value) != "" {
				return known(strings.TrimSpace(value), "sw_vers")
			}
		}
		return unknown[string]("sw_vers says no " + name)
	}
	f.System, f.Version, f.Build = field("ProductName"), field("ProductVersion"), field("BuildVersion")
}

var chipForm = regexp.MustCompile(`^Apple M(\d+)( |$)`)

func generation(chip Fact[string]) Fact[int] {
	parts := chipForm.FindStringSubmatch(chip.Value)
	if !chip.Known || parts == nil {
		return unknown[int]("the chip's name has no generation")
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return unknown[int]("the chip's name has no generation")
	}
	return known(n, "the chip's name")
}

// macCores reads the performance levels, which are ordered from the fastest. Their names differ by generation, so the
// first and the last level are what counts.
func macCores(src Sources, f *Facts) {
	why := "sysctl hw.nperflevels does not answer"
	f.CoreLevels, f.PerformanceCores, f.EfficiencyCores = unknown[[]CoreLevel](why), unknown[int](why),
		unknown[int](why)
	levels, err := src.Int("hw.nperflevels")
	if err != nil || levels < 1 || levels > 8 {
		return
	}
	var found []CoreLevel
	for i := range levels {
		prefix := fmt.Sprintf("hw.perflevel%d.", i)
		cores, err := src.Int(prefix + "physicalcpu")
		if err != nil || cores < 1 {
			continue
		}
		name, _ := src.Text(prefix + "name")
		found = append(found, CoreLevel{name, int(cores)})
	}
	if len(found) == 0 {
		return
	}
	f.CoreLevels = known(found, "sysctl hw.perflevelN")
	f.PerformanceCores = known(found[0].Cores, "sysctl hw.perflevel0.physicalcpu")
	f.EfficiencyCores = known(0, "there is one kind of core")
	if last := len(found) - 1; last > 0 {
		f.EfficiencyCores = known(found[last].Cores, fmt.Sprintf("sysctl hw.perflevel%d.physicalcpu", levels-1))
	}
}

var (
	pageSize = regexp.MustCompile(`page size of (\d+) bytes`)
	pageLine = regexp.MustCompile(`(?m)^(Pages [a-z ]+):\s+(\d+)\.`)
)

// macAvailable adds up what the system can give without swapping: free, speculative, inactive and purgeable pages.
func macAvailable(ctx context.Context, src Sources) Fact[int64] {
	out, err := src.Run(ctx, "/usr/bin/vm_stat")
	if err != nil {
		return unknown[int64](err.Error())
	}
	size := pageSize.FindSubmatch(out)
	if size == nil {
		return unknown[int64]("vm_stat says no page size")
	}
	bytes, _ := strconv.ParseInt(string(size[1]), 10, 64)
	var pages int64
	seen := false
	for _, line := range pageLine.FindAllSubmatch(out, -1) {
		switch string(line[1]) {
		case "Pages free", "Pages speculative", "Pages inactive", "Pages purgeable":
			n, _ := strconv.ParseInt(string(line[2]), 10, 64)
			pages, seen = pages+n, true
		}
	}
	if !seen {
		return unknown[int64]("vm_stat lists no pages")
	}
	return guessed(pages*bytes, "vm_stat: free, speculative, inactive and purgeable pages")
}

func macPressure(src Sources) Fact[string] {
	const name = "kern.memorystatus_vm_pressure_level"
	level, err := src.Int(name)
	if err != nil {
		return unknown[string]("sysctl " + name + " does not answer")
	}
	word, ok := map[int64]string{1: "normal", 2: "warning", 4: "critical"}[level]
	if !ok {
		return unknown[string](fmt.Sprintf("sysctl %s says %d", name, level))
	}
	return known(word, "sysctl "+name)
}

// profiled is what system_profiler, the slowest of all questions (a second or more), answers in one go.
type profiled struct {
	Displays []struct {
		Cores string `json:"sppci_cores"`
	} `json:"SPDisplaysDataType"`
	Storage []struct {
		Mount string `json:"mount_point"`
		Free  int64  `json:"free_space_in_bytes"`
	} `json:"SPStorageDataType"`
	err error
}

func profile(ctx context.Context, src Sources) (p profiled) {
	out, err := src.Run(ctx, "/usr/sbin/system_profiler", "-json", "SPDisplaysDataType", "SPStorageDataType")
	if err != nil {
		p.err = err
	} else if err := json.Unmarshal(out, &p); err != nil {
		p.err = fmt.Errorf("system_profiler: %w", err)
	}
	return p
}

func gpuCores(p profiled) Fact[int] {
	if p.err != nil {
		return unknown[int](p.err.Error())
	}
	for _, gpu := range p.Displays {
		if n, err := strconv.Atoi(gpu.Cores); err == nil && n > 0 {
			return known(n, "system_profiler: sppci_cores")
		}
	}
	return unknown[int]("system_profiler says no number of GPU cores")
}

var (
	drawing  = regexp.MustCompile(`Now drawing from '(AC|Battery) Power'`)
	percent  = regexp.MustCompile(`\b(\d{1,3})%;`)
	sleepRow = regexp.MustCompile(`(?m)^\s*sleep\s+(\d+)`)
	lowRow   = regexp.MustCompile(`(?m)^\s*(?:lowpowermode|powermode)\s+(\d+)`)
)

func macPower(ctx context.Context, src Sources, f *Facts) {
	out, err := src.Run(ctx, "/usr/bin/pmset", "-g", "batt")
	f.Power, f.Battery = unknown[string]("pmset does not answer"), unknown[int]("no battery is reported")
	if err == nil {
		if m := drawing.FindSubmatch(out); m != nil {
			f.Power = known(map[string]string{"AC": "ac", "Battery": "battery"}[string(m[1])], "pmset -g batt")
		}
		if m := percent.FindSubmatch(out); m != nil {
			n, _ := strconv.Atoi(string(m[1]))
			f.Battery = known(n, "pmset -g batt")
		}
	}
	f.SleepMinutes, f.LowPower = unknown[int]("pmset does not answer"), unknown[bool]("pmset says nothing of it")
	out, err = src.Run(ctx, "/usr/bin/pmset", "-g")
	if err != nil {
		return
	}
	if m := sleepRow.FindSubmatch(out); m != nil {
		n, _ := strconv.Atoi(string(m[1]))
		f.SleepMinutes = known(n, "pmset -g")
	}
	if m := lowRow.FindSubmatch(out); m != nil {
		f.LowPower = known(string(m[1]) == "1", "pmset -g")
	}
}

// developerFolder asks xcode-select, which is a program of its own and opens no dialog. Status 2 means that neither
// Xcode nor the Command Line Tools are there.
func developerFolder(ctx context.Context, src Sources) Fact[string] {
	out, err := src.Run(ctx, "/usr/bin/xcode-select", "-p")
	var bad *RunError
	switch {
	case err == nil && strings.HasPrefix(string(out), "/"):
		return known(strings.TrimSpace(string(out)), "xcode-select -p")
	case errors.As(err, &bad) && bad.Status > 0:
		return known("", "xcode-select -p: "+bad.Output)
	case err != nil:
		return unknown[string](err.Error())
	}
	return unknown[string]("xcode-select -p says no folder")
}

// purgeable is what system_profiler counts as free and statfs does not.
func purgeable(p profiled, v Volume) Fact[int64] {
	if p.err != nil {
		return unknown[int64](p.err.Error())
	}
	for _, s := range p.Storage {
		if s.Mount == v.Mount && s.Free > 0 {
			return guessed(max(0, s.Free-v.FreeBytes), "system_profiler's free space less statfs's")
		}
	}
	return unknown[int64]("system_profiler does not list " + v.Mount)
}

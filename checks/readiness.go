package checks

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Known is a value that may not be known.
type Known[T any] struct {
	Value T
	Known bool
}

// Machine is what readiness needs to know. Words are those of the fields' comments; sizes are bytes.
type Machine struct {
	OS, Arch   string // "darwin", "linux"; "arm64", "amd64": of the machine
	System     Known[string]
	Version    Known[string]
	Translated Known[bool] // Rosetta

	RAMBytes, LimitBytes, AvailableBytes Known[int64]  // memory, a container's limit, what could be had now
	Pressure                             Known[string] // "normal", "warning", "critical"
	WorkingSetBytes                      Known[int64]  // Metal
	WorkingSetCertain                    bool

	Power          Known[string] // "ac", "battery"
	BatteryPercent Known[int]
	LowPower       Known[bool]
	SleepMinutes   Known[int] // 0: never

	Home                      string
	FileSystem                Known[string]
	FreeBytes, PurgeableBytes Known[int64]

	Program     string
	Quarantined Known[bool]
	DevTools    Known[string] // known and empty: none
	GoPath      Known[string] // known and empty: none
	GoVersion   Known[string]
	Access      []Access
	Proxies     []string // NAME=value, without passwords
}

// Access is one byte read of a model file: "open", "absent", "refused", "privacy".
type Access struct {
	Path    string
	Outcome Known[string]
}

// Need is what the plan at hand takes. DiskBytes is still to be written on the home's volume, without margin;
// MemoryBytes is the projection of sizing; Download, Build and Metal say what the plan does.
type Need struct {
	DiskBytes   int64
	MemoryBytes int64
	Download    bool
	Build       bool
	Metal       bool
}

const (
	gib = 1 << 30
	// maxDiskMargin is the project's margin for a model of many gigabytes.
	maxDiskMargin = 5 * gib
	// oldestMac has the Metal language 3.1 (bfloat) that the kernels use.
	oldestMac = "14.0"
	// oldestGo is what go.mod asks for.
	oldestGo = "1.26"
	// lowBattery is where macOS itself begins to warn.
	lowBattery = 20
)

// DiskMargin is what must stay free beside the bytes that are needed: as much again, at most 5 GiB.
func DiskMargin(needBytes int64) int64 { return min(max(needBytes, 0), maxDiskMargin) }

// Readiness runs every check in a fixed order. It is pure: the same machine and need give the same records.
func Readiness(m Machine, need Need) []Check {
	all := []Check{
		system(m, need), rosetta(m), memory(m, need), pressure(m), metal(m, need), disk(m, need), fileSystem(m),
		power(m, need), sleep(m, need), quarantine(m), developerTools(m, need), goToolchain(m, need), proxies(m, need),
	}
	for _, a := range m.Access {
		all = append(all, access(a))
	}
	return all
}

func system(m Machine, need Need) Check {
	c := Check{ID: "os-version", Severity: Blocker, Expected: "Linux, or macOS " + oldestMac + " or newer"}
	c.Observed = strings.TrimSpace(m.System.Value + " " + m.Version.Value)
	switch {
	case m.OS == "linux":
		c.Status = Pass
		if c.Observed == "" {
			c.Observed = "Linux"
		}
	case m.OS != "darwin":
		c.Status, c.Observed, c.Fix = Fail, m.OS, "Run slipway on macOS or Linux."
	case !m.Version.Known:
		c.Status, c.Observed = Unknown, "the version of macOS is not known"
	case olderThan(m.Version.Value, oldestMac) && need.Metal:
		c.Status, c.Fix = Fail, "Update macOS in System Settings, General, Software Update."
	case olderThan(m.Version.Value, oldestMac):
		c.Status, c.Severity, c.Fix = Warn, Warning, "The CPU works; Metal needs a newer macOS."
	default:
		c.Status = Pass
	}
	return c
}

func rosetta(m Machine) Check {
	c := Check{ID: "rosetta", Severity: Warning, Expected: "a program built for this machine's processor", Status: Pass, Observed: "not translated"}
	if m.Translated.Known && m.Translated.Value {
		c.Status, c.Observed = Warn, "this x86 program runs translated by Rosetta"
		c.Fix = "Use the arm64 build of slipway. The server that slipway builds is arm64 in any case."
	}
	return c
}

func memory(m Machine, need Need) Check {
	c := Check{ID: "memory", Severity: Blocker, Expected: size(need.MemoryBytes) + " for the planned model and window"}
	have, where := m.RAMBytes, "of memory"
	if m.LimitBytes.Known && m.LimitBytes.Value < have.Value {
		have, where = m.LimitBytes, "allowed by this container"
	}
	c.Observed = size(have.Value) + " " + where
	switch {
	case !have.Known:
		c.Status, c.Observed = Unknown, "the memory is not known"
	case have.Value < need.MemoryBytes:
		c.Status, c.Fix = Fail, "Choose a smaller model or a smaller window."
	case m.AvailableBytes.Known && m.AvailableBytes.Value < need.MemoryBytes:
		c.Status, c.Severity = Warn, Warning
		c.Observed += fmt.Sprintf(", about %s of it available now", size(m.AvailableBytes.Value))
		c.Fix = "Close large programs before the model is loaded."
	default:
		c.Status = Pass
	}
	return c
}

func pressure(m Machine) Check {
	c := Check{ID: "memory-pressure", Severity: Warning, Expected: "normal", Observed: m.Pressure.Value}
	switch {
	case !m.Pressure.Known:
		c.Status, c.Observed = Unknown, "not known"
	case m.Pressure.Value == "normal":
		c.Status = Pass
	default:
		c.Status, c.Fix = Warn, "Close large programs: the system is short of memory already."
	}
	return c
}

func metal(m Machine, need Need) Check {
	c := Check{ID: "metal-working-set", Severity: Blocker, Expected: "not needed: the plan runs on the CPU", Status: Pass, Observed: "no Metal"}
	if m.WorkingSetBytes.Known {
		c.Observed = "Metal may use " + size(m.WorkingSetBytes.Value)
	}
	if !need.Metal {
		return c
	}
	c.Expected = size(need.MemoryBytes) + " for the planned model and window"
	switch {
	case m.OS != "darwin" || m.Arch != "arm64":
		c.Status, c.Fix = Fail, "Choose a model that runs on the CPU."
	case !m.WorkingSetBytes.Known:
		c.Status, c.Observed = Unknown, "Metal did not answer"
	case m.WorkingSetBytes.Value < need.MemoryBytes:
		c.Status, c.Fix = Fail, "Choose a smaller model or a smaller window."
	case !m.WorkingSetCertain:
		c.Status, c.Severity, c.Observed = Warn, Warning, c.Observed+", an estimate: the server asks the device before it loads anything"
	}
	return c
}

func disk(m Machine, need Need) Check {
	total := need.DiskBytes + DiskMargin(need.DiskBytes)
	c := Check{ID: "disk", Severity: Blocker, Status: Pass, Observed: size(m.FreeBytes.Value) + " free where " + m.Home + " is",
		Expected: fmt.Sprintf("%s: %s to write and %s that stays free", size(total), size(need.DiskBytes), size(total-need.DiskBytes))}
	if need.DiskBytes == 0 {
		c.Expected = "nothing: all is there"
	}
	switch {
	case !m.FreeBytes.Known:
		c.Status, c.Observed = Unknown, "the free space where "+m.Home+" is, is not known"
	case m.FreeBytes.Value < total:
		c.Status, c.Fix = Fail, fmt.Sprintf("Free %s on that volume, or choose another with --home.", size(total-m.FreeBytes.Value))
		if m.PurgeableBytes.Known && m.PurgeableBytes.Value > 0 {
			c.Observed += fmt.Sprintf("; about %s more may be purgeable, which does not count until macOS frees it", size(m.PurgeableBytes.Value))
		}
	}
	return c
}

// poorFileSystems lack what the store relies on, with what they lack.
var poorFileSystems = map[string]string{
	"exfat": "no clones, no permissions and no reliable locks", "msdos": "no file over 4 GiB, no permissions and no locks",
	"vfat": "no file over 4 GiB, no permissions and no locks", "ntfs": "no reliable locks",
	"smbfs": "no reliable locks or synced writes", "cifs": "no reliable locks or synced writes", "smb2": "no reliable locks or synced writes",
	"nfs": "no reliable locks", "webdav": "no locks or synced writes", "afpfs": "no reliable locks",
}

func fileSystem(m Machine) Check {
	c := Check{ID: "file-system", Severity: Blocker, Expected: "a local file system with locks and permissions (APFS, ext4, xfs, btrfs)", Observed: m.FileSystem.Value, Status: Pass}
	lacks, poor := poorFileSystems[strings.ToLower(m.FileSystem.Value)]
	switch {
	case !m.FileSystem.Known || m.FileSystem.Value == "":
		c.Status, c.Observed = Unknown, "not known"
	case poor:
		c.Status, c.Observed = Fail, fmt.Sprintf("%s: %s", m.FileSystem.Value, lacks)
		c.Fix = "Choose a home on an internal disk with --home."
	}
	return c
}

func power(m Machine, need Need) Check {
	c := Check{ID: "power", Severity: Warning, Expected: "mains power for long work", Observed: m.Power.Value, Status: Pass}
	if m.BatteryPercent.Known {
		c.Observed += fmt.Sprintf(", battery at %d %%", m.BatteryPercent.Value)
	}
	long := need.Download || need.Build || need.Metal
	switch {
	case !m.Power.Known:
		c.Status, c.Observed, c.Severity = Unknown, "not known", Info
	case m.Power.Value == "battery" && m.BatteryPercent.Known && m.BatteryPercent.Value <= lowBattery && long:
		c.Status, c.Fix = Warn, "Connect the charger: the battery may not last."
	case m.LowPower.Known && m.LowPower.Value:
		c.Status, c.Observed = Warn, c.Observed+", low power mode"
		c.Fix = "Low power mode slows the GPU; it can be turned off in System Settings, Battery."
	case m.Power.Value == "battery" && long:
		c.Status, c.Fix = Warn, "Connect the charger before a long download."
	}
	return c
}

func sleep(m Machine, need Need) Check {
	c := Check{ID: "sleep", Severity: Info, Expected: "awake while slipway works", Status: Pass, Observed: "never sleeps by itself"}
	switch {
	case !m.SleepMinutes.Known:
		c.Status, c.Observed = Unknown, "not known"
	case m.SleepMinutes.Value > 0:
		c.Observed = fmt.Sprintf("sleeps after %d min of idling", m.SleepMinutes.Value)
		if need.Download {
			c.Observed += "; slipway keeps the machine awake during the download, not with the lid closed"
		}
	}
	return c
}

func quarantine(m Machine) Check {
	c := Check{ID: "quarantine", Severity: Blocker, Expected: "no quarantine on " + m.Program, Status: Pass, Observed: "none"}
	switch {
	case !m.Quarantined.Known:
		c.Severity, c.Observed, c.Expected = Info, "does not apply here", "no quarantine"
	case m.Quarantined.Value:
		c.Status, c.Observed = Fail, "macOS quarantines the program because a browser downloaded it"
		c.Fix = "Compare the program's checksum with the published one, then lift the quarantine yourself."
		c.Command = []string{"/usr/bin/xattr", "-d", "com.apple.quarantine", m.Program}
	}
	return c
}

// developerTools are not needed by Go itself; what needs them is a build of somebody else's native code.
func developerTools(m Machine, need Need) Check {
	c := Check{ID: "command-line-tools", Severity: Info, Expected: "not needed: slipway's server builds without them", Status: Pass, Observed: m.DevTools.Value}
	switch {
	case m.OS != "darwin":
		c.Observed = "does not apply here"
	case !m.DevTools.Known:
		c.Status, c.Observed = Unknown, "not known"
	case m.DevTools.Value == "":
		c.Status, c.Observed = Warn, "none; /usr/bin/git and /usr/bin/clang are stand-ins that open an install dialog"
		c.Fix = "Only an engine with native code needs them."
		c.Command = []string{"/usr/bin/xcode-select", "--install"}
	}
	return c
}

func goToolchain(m Machine, need Need) Check {
	c := Check{ID: "go", Severity: Blocker, Expected: "Go " + oldestGo + " or newer to build the server", Status: Pass}
	c.Observed = strings.TrimSpace(m.GoPath.Value + " " + m.GoVersion.Value)
	if !need.Build {
		c.Severity, c.Expected = Info, "not needed: nothing is built"
		if c.Observed == "" {
			c.Observed = "none"
		}
		return c
	}
	switch {
	case !m.GoPath.Known:
		c.Status, c.Observed = Unknown, "not known"
	case m.GoPath.Value == "":
		c.Status, c.Observed, c.Fix = Fail, "no Go on PATH", "Install Go, or use a release that carries the server."
		c.DocsURL = "https://go.dev/doc/install"
	case !m.GoVersion.Known:
		c.Status, c.Severity, c.Observed = Unknown, Warning, m.GoPath.Value+", whose version was not asked"
	case olderThan(m.GoVersion.Value, oldestGo):
		c.Status, c.Fix = Fail, "Update Go."
		c.DocsURL = "https://go.dev/doc/install"
	}
	return c
}

func proxies(m Machine, need Need) Check {
	c := Check{ID: "proxies", Severity: Info, Expected: "a proxy that lets the hub's hosts through, or none", Status: Pass, Observed: "none"}
	if len(m.Proxies) == 0 {
		return c
	}
	c.Observed = strings.Join(m.Proxies, ", ")
	exempt := slices.ContainsFunc(m.Proxies, func(p string) bool {
		name, value, _ := strings.Cut(p, "=")
		return strings.EqualFold(name, "NO_PROXY") && (value == "*" || strings.Contains(value, "127.0.0.1") || strings.Contains(value, "localhost"))
	})
	if !exempt {
		c.Status, c.Severity = Warn, Warning
		c.Fix = "Other programs may send requests to 127.0.0.1 through the proxy: set NO_PROXY=localhost,127.0.0.1 for them. slipway itself does not."
	}
	return c
}

func access(a Access) Check {
	c := Check{ID: "access:" + a.Path, Severity: Blocker, Expected: "one byte can be read", Observed: a.Outcome.Value, Status: Pass}
	switch {
	case !a.Outcome.Known:
		c.Status, c.Observed = Unknown, "not known"
	case a.Outcome.Value == "absent":
		c.Status, c.Fix = Fail, "Run the plan that installs it."
	case a.Outcome.Value == "privacy":
		c.Status, c.Observed = Fail, "macOS denies this program the folder "+path.Dir(a.Path)
		c.Fix = "Allow the terminal in System Settings, Privacy & Security, Files & Folders (or Full Disk Access), or move the models out of Documents, Desktop and Downloads."
	case a.Outcome.Value == "refused":
		c.Status, c.Observed, c.Fix = Fail, "its permissions keep this user out", "Give this user permission to read it."
	}
	return c
}

// olderThan compares dotted numbers; a missing part is 0, and what is no number is taken as newer.
func olderThan(version, border string) bool {
	a, b := strings.Split(version, "."), strings.Split(border, ".")
	for i := range max(len(a), len(b)) {
		x, y := part(a, i), part(b, i)
		if x != y {
			return x < y
		}
	}
	return false
}

func part(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return 1 << 30
	}
	return n
}

// size is bytes in GiB and GB, or in MiB and MB when that is clearer.
func size(bytes int64) string {
	if bytes < gib {
		return fmt.Sprintf("%.0f MiB (%.0f MB)", float64(bytes)/(1<<20), float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GiB (%.1f GB)", float64(bytes)/gib, float64(bytes)/1e9)
}

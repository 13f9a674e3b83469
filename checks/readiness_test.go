package checks

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func known[T any](v T) Known[T] { return Known[T]{v, true} }

// ready is a machine on which nothing is to be said.
func ready() Machine {
	return Machine{
		OS: "darwin", Arch: "arm64", System: known("macOS"), Version: known("26.1"), Translated: known(false),
		RAMBytes: known[int64](36 * gib), AvailableBytes: known[int64](30 * gib), Pressure: known("normal"),
		WorkingSetBytes: known[int64](27 * gib), WorkingSetCertain: true,
		Power: known("ac"), BatteryPercent: known(100), LowPower: known(false), SleepMinutes: known(0),
		Home: "/Users/a/.slipway", FileSystem: known("apfs"), FreeBytes: known[int64](100 * gib), PurgeableBytes: known[int64](gib),
		Program: "/usr/local/bin/slipway", Quarantined: known(false), DevTools: known("/Library/Developer/CommandLineTools"),
		GoPath: known("/usr/local/go/bin/go"), GoVersion: known("1.26.8"),
		Access: []Access{{"/Users/a/m", known("open")}},
	}
}

var need = Need{DiskBytes: 16 * gib, MemoryBytes: 20 * gib, Download: true, Build: true, Metal: true}

func TestReadyMachineHasNothingToSay(t *testing.T) {
	for _, c := range Readiness(ready(), need) {
		if c.Status != Pass || c.Fix != "" || c.Command != nil {
			t.Errorf("%+v", c)
		}
		if c.ID == "" || c.Severity == "" || c.Expected == "" || c.Observed == "" {
			t.Errorf("incomplete: %+v", c)
		}
	}
}

func TestReadiness(t *testing.T) {
	rows := []struct {
		name     string
		change   func(*Machine, *Need)
		id       string
		status   Status
		severity Severity
		text     string // in observed or fix
	}{
		{"macOS too old for the kernels", func(m *Machine, _ *Need) { m.Version = known("13.6") }, "os-version", Fail, Blocker, "Software Update"},
		{"macOS too old, but the CPU is used", func(m *Machine, n *Need) { m.Version, n.Metal = known("13.6"), false }, "os-version", Warn, Warning, "CPU works"},
		{"macOS 9.9 is older than 14.0", func(m *Machine, _ *Need) { m.Version = known("9.9") }, "os-version", Fail, Blocker, ""},
		{"macOS 140 is not older", func(m *Machine, _ *Need) { m.Version = known("140") }, "os-version", Pass, Blocker, ""},
		{"macOS 14 without a minor number", func(m *Machine, _ *Need) { m.Version = known("14") }, "os-version", Pass, Blocker, ""},
		{"version not learnt", func(m *Machine, _ *Need) { m.Version.Known = false }, "os-version", Unknown, Blocker, "not known"},
		{"another system", func(m *Machine, _ *Need) { m.OS = "windows" }, "os-version", Fail, Blocker, "macOS or Linux"},
		{"translated program", func(m *Machine, _ *Need) { m.Translated = known(true) }, "rosetta", Warn, Warning, "arm64 build"},
		{"too little memory", func(m *Machine, _ *Need) { m.RAMBytes = known[int64](16 * gib) }, "memory", Fail, Blocker, "smaller"},
		{"container holds it to less", func(m *Machine, _ *Need) { m.LimitBytes = known[int64](2 * gib) }, "memory", Fail, Blocker, "container"},
		{"other programs hold the memory", func(m *Machine, _ *Need) { m.AvailableBytes = known[int64](gib) }, "memory", Warn, Warning, "Close"},
		{"memory not learnt", func(m *Machine, _ *Need) { m.RAMBytes.Known = false }, "memory", Unknown, Blocker, "not known"},
		{"memory pressure", func(m *Machine, _ *Need) { m.Pressure = known("critical") }, "memory-pressure", Warn, Warning, "critical"},
		{"Metal allows less than the plan takes", func(m *Machine, _ *Need) { m.WorkingSetBytes = known[int64](10 * gib) }, "metal-working-set", Fail, Blocker, "10.0 GiB"},
		{"Metal estimated", func(m *Machine, _ *Need) { m.WorkingSetCertain = false }, "metal-working-set", Warn, Warning, "an estimate"},
		{"Metal wanted on Linux", func(m *Machine, _ *Need) { m.OS, m.Arch = "linux", "amd64" }, "metal-working-set", Fail, Blocker, "CPU"},
		{"Metal wanted on an Intel Mac", func(m *Machine, _ *Need) { m.Arch = "amd64" }, "metal-working-set", Fail, Blocker, "CPU"},
		{"Metal not wanted on Linux", func(m *Machine, n *Need) { m.OS, m.Arch, n.Metal = "linux", "amd64", false }, "metal-working-set", Pass, Blocker, ""},
		{"disk full", func(m *Machine, _ *Need) { m.FreeBytes = known[int64](20 * gib) }, "disk", Fail, Blocker, "purgeable"},
		{"one byte short of the margin", func(m *Machine, _ *Need) { m.FreeBytes = known[int64](21*gib - 1) }, "disk", Fail, Blocker, "--home"},
		{"exactly the margin", func(m *Machine, _ *Need) { m.FreeBytes = known[int64](21 * gib) }, "disk", Pass, Blocker, ""},
		{"nothing to write on a full disk", func(m *Machine, n *Need) { m.FreeBytes, n.DiskBytes = known[int64](0), 0 }, "disk", Pass, Blocker, ""},
		{"free space not learnt", func(m *Machine, _ *Need) { m.FreeBytes.Known = false }, "disk", Unknown, Blocker, "not known"},
		{"home on exFAT", func(m *Machine, _ *Need) { m.FileSystem = known("exfat") }, "file-system", Fail, Blocker, "locks"},
		{"home on a share", func(m *Machine, _ *Need) { m.FileSystem = known("smbfs") }, "file-system", Fail, Blocker, "locks"},
		{"file system in capitals", func(m *Machine, _ *Need) { m.FileSystem = known("ExFAT") }, "file-system", Fail, Blocker, "locks"},
		{"on battery before a download", func(m *Machine, _ *Need) { m.Power, m.BatteryPercent = known("battery"), known(80) }, "power", Warn, Warning, "charger"},
		{"battery nearly empty", func(m *Machine, _ *Need) { m.Power, m.BatteryPercent = known("battery"), known(9) }, "power", Warn, Warning, "may not last"},
		{"on battery with nothing to do", func(m *Machine, n *Need) { m.Power, *n = known("battery"), Need{} }, "power", Pass, Warning, "battery"},
		{"low power mode", func(m *Machine, _ *Need) { m.LowPower = known(true) }, "power", Warn, Warning, "System Settings"},
		{"sleeps while idle", func(m *Machine, _ *Need) { m.SleepMinutes = known(1) }, "sleep", Pass, Info, "lid"},
		{"quarantined program", func(m *Machine, _ *Need) { m.Quarantined = known(true) }, "quarantine", Fail, Blocker, "yourself"},
		{"no Command Line Tools", func(m *Machine, _ *Need) { m.DevTools = known("") }, "command-line-tools", Warn, Info, "stand-ins"},
		{"no Go and a build", func(m *Machine, _ *Need) { m.GoPath, m.GoVersion = known(""), Known[string]{} }, "go", Fail, Blocker, "Install Go"},
		{"no Go and no build", func(m *Machine, n *Need) { m.GoPath, m.GoVersion, n.Build = known(""), Known[string]{}, false }, "go", Pass, Info, "none"},
		{"Go 1.9 is older than 1.26", func(m *Machine, _ *Need) { m.GoVersion = known("1.9.7") }, "go", Fail, Blocker, "Update Go"},
		{"Go behind a shim", func(m *Machine, _ *Need) { m.GoVersion.Known = false }, "go", Unknown, Warning, "not asked"},
		{"proxy without an exemption", func(m *Machine, _ *Need) { m.Proxies = []string{"HTTPS_PROXY=http://p:1"} }, "proxies", Warn, Warning, "NO_PROXY"},
		{"proxy with an exemption", func(m *Machine, _ *Need) { m.Proxies = []string{"HTTPS_PROXY=http://p:1", "no_proxy=127.0.0.1"} }, "proxies", Pass, Info, "http://p:1"},
		{"privacy settings", func(m *Machine, _ *Need) { m.Access[0].Outcome = known("privacy") }, "access:/Users/a/m", Fail, Blocker, "Privacy & Security"},
		{"no permission", func(m *Machine, _ *Need) { m.Access[0].Outcome = known("refused") }, "access:/Users/a/m", Fail, Blocker, "permission"},
		{"file gone", func(m *Machine, _ *Need) { m.Access[0].Outcome = known("absent") }, "access:/Users/a/m", Fail, Blocker, "plan"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			m, n := ready(), need
			row.change(&m, &n)
			all := Readiness(m, n)
			at := slices.IndexFunc(all, func(c Check) bool { return c.ID == row.id })
			if at < 0 {
				t.Fatalf("no check %s", row.id)
			}
			c := all[at]
			if c.Status != row.status || c.Severity != row.severity || !strings.Contains(c.Observed+" "+c.Fix, row.text) {
				t.Errorf("%+v", c)
			}
			if blocked := len(Blockers(all)) > 0; blocked != slices.ContainsFunc(all, func(c Check) bool { return c.Status == Fail && c.Severity == Blocker }) {
				t.Error("Blockers disagrees with the records")
			}
			if c.Status == Fail && c.Fix == "" {
				t.Error("a failed check says no fix")
			}
			if again := Readiness(m, n); !reflect.DeepEqual(all, again) {
				t.Error("not the same records twice")
			}
		})
	}
}

// Records are the interface to other programs: the names of the keys must not change.
func TestRecordKeys(t *testing.T) {
	data, err := json.Marshal(Check{Command: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"","status":"","severity":"","observed":"","expected":"","fix":"","command":["a"],"docs_url":""}`
	if string(data) != want {
		t.Errorf("%s", data)
	}
}

func TestDiskMarginGrowsWithTheNeedUpTo5GiB(t *testing.T) {
	for needed, want := range map[int64]int64{0: 0, 7_000_000: 7_000_000, 5 * gib: 5 * gib, 16 * gib: 5 * gib, -1: 0} {
		if got := DiskMargin(needed); got != want {
			t.Errorf("%d: %d, want %d", needed, got, want)
		}
	}
}

package installer

import (
	"fmt"
	"slices"
	"strings"

	"slipway/installer/machine"
	"slipway/installer/plan"
)

// weakFileSystems have no clones, no locks or no modes that mean anything: slipway works on them and says so.
var weakFileSystems = []string{"exfat", "msdos", "vfat", "smbfs", "cifs", "webdav", "ntfs", "fuseblk", "nfs"}

// warnings are facts that a person should know before a plan, and that stop nothing.
func warnings(f machine.Facts) []plan.Check {
	checks := []plan.Check{}
	warn := func(id, observed, expected, fix string, command ...string) {
		if command == nil {
			command = []string{}
		}
		checks = append(checks, plan.Check{ID: id, Status: "warn", Severity: "warning", Observed: observed,
			Expected: expected,
			Fix:      fix, Command: command, DocsURL: plan.DocsURL + "#" + id})
	}
	if f.Quarantined.Known && f.Quarantined.Value {
		warn("quarantine", "this program was downloaded by a browser and macOS holds it back",
			"no com.apple.quarantine attribute",
			"Look where it came from, then take the mark off: xattr -d com.apple.quarantine and the path of slipway.")
	}
	if f.Translated.Known && f.Translated.Value {
		warn("rosetta", "this program is translated by Rosetta", "a program for arm64",
			"Use slipway for arm64; this one cannot reach Metal well.")
	}
	if f.FileSystem.Known && slices.Contains(weakFileSystems, strings.ToLower(f.FileSystem.Value)) {
		warn("file-system", fmt.Sprintf("the home lies on %s", f.FileSystem.Value),
			"a local file system such as APFS or ext4",
			"Choose a home on an internal disk with --home; here files are copied instead of cloned, and locks "+
				"may not hold.")
	}
	if f.Pressure.Known && f.Pressure.Value == "critical" {
		warn("memory-pressure", "memory is nearly exhausted", "normal memory pressure",
			"Close other programs before the server starts.")
	}
	for _, a := range f.Access {
		if a.Fact.Known && a.Fact.Value == "privacy" {
			warn("privacy", fmt.Sprintf("macOS does not let this program read %q", a.Path),
				"access to the model's files",
				"System Settings, Privacy & Security, Files and Folders: allow your terminal, or use another folder.")
		}
	}
	return checks
}

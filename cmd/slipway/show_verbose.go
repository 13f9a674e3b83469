package main

import (
	"fmt"
	"io"
	"strings"

	"slipway/installer"
	"slipway/installer/machine"
	"slipway/profiles"
	"slipway/termtext"
	"slipway/units"
)

// printVerbose is all that is known of machine, choice and plan, in whole sentences.
func printVerbose(w io.Writer, p installer.Prepared) {
	for _, line := range append(factLines(p.Facts), serverLine(p.Server)) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "\nModel:   %s\nProfile: %s\n", p.Manifest.Title, p.Plan.Decisions.Profile.Name)
	if p.Manifest.Embedded {
		fmt.Fprintf(w, "  %s\n", toyWords)
	}
	for _, reason := range p.Proposal.Reasons {
		fmt.Fprintf(w, "  %s\n", reason)
	}
	if p.DraftCost != "" {
		fmt.Fprintf(w, "  %s\n", p.DraftCost)
	}
	if p.TokensPerSecond > 0 {
		fmt.Fprintf(w, "  %s\n", estimateWords(p.TokensPerSecond))
	}
	for _, other := range p.Alternatives {
		fmt.Fprintf(w, "  %s\n", other.Sentence)
	}
	for _, note := range p.Proposal.Result.Notes {
		fmt.Fprintf(w, "  %s\n", sentence(note))
	}
	fmt.Fprintf(w, "\nPlan %s\n", p.Plan.Digest)
	for i, a := range p.Plan.Actions {
		fmt.Fprintf(w, "  %d. %s%s\n", i+1, a.Sentence, stateMark(p, a))
	}
	if p.StopLines != "" {
		fmt.Fprintf(w, "  %s\n", p.StopLines)
	}
	if p.Contended != "" {
		fmt.Fprintf(w, "  Note: %s\n", termtext.Line(p.Contended))
	}
	stopped := "no other program is stopped"
	if len(p.Plan.Decisions.Stops) > 0 {
		stopped = "no other program is stopped but what is named above"
	}
	fmt.Fprintf(w, "  Undo: slipway uninstall. Nothing needs sudo, and %s.\n", stopped)
}

// factLines are the facts that a person wants to see, unknown ones left out, guesses marked.
func factLines(f machine.Facts) []string {
	var lines []string
	add := func(name string, parts ...string) {
		var there []string
		for _, part := range parts {
			if part != "" {
				there = append(there, termtext.Line(part))
			}
		}
		if len(there) > 0 {
			lines = append(lines, fmt.Sprintf("%-8s %s", name+":", strings.Join(there, ", ")))
		}
	}
	add("Machine", text(f.Chip), text(f.Model), cores(f))
	add("System", strings.TrimSpace(text(f.System)+" "+text(f.Version)), f.Arch.Value)
	add("Memory", sized(f.RAM, units.GiB, ""), sized(f.MemoryLimit, units.GiB, "limit of the container"),
		sized(f.WorkingSet, units.GiB, "for Metal"), pressure(f))
	add("Disk", sized(f.DiskFree, units.Short, "free on the volume of "+f.Home),
		sized(f.Purgeable, units.Short, "purgeable"), text(f.FileSystem))
	add("Power", text(f.Power))
	var tools []string
	for _, t := range f.Tools {
		if t.Path.Known && t.Path.Value != "" {
			tools = append(tools, strings.TrimSpace(t.Name+" "+text(t.Version)))
		}
	}
	add("Tools", tools...)
	return lines
}

// serverLine is what the server honours, marked where it is only assumed.
func serverLine(f machine.Fact[profiles.Capabilities]) string {
	can := f.Value
	line := fmt.Sprintf("%-8s on %s, KV %s, prefill %s, draft %s", "Server:", strings.Join(can.Devices, " or "),
		strings.Join(can.KVFormats, " or "),
		strings.Join(can.PrefillPolicies, " or "), strings.Join(can.Drafts, " or "))
	if !f.Certain {
		line += " (" + f.How + ")"
	}
	return line
}

func text(f machine.Fact[string]) string {
	if !f.Known {
		return ""
	}
	return f.Value
}

func sized(f machine.Fact[int64], size func(int64) string, what string) string {
	if !f.Known || f.Value == 0 {
		return ""
	}
	s := strings.TrimSpace(size(f.Value) + " " + what)
	if !f.Certain {
		s += " (" + f.How + ")"
	}
	return s
}

func cores(f machine.Facts) string {
	if !f.PerformanceCores.Known {
		return ""
	}
	s := fmt.Sprintf("%d cores", f.PerformanceCores.Value)
	if f.EfficiencyCores.Known && f.EfficiencyCores.Value > 0 {
		s = fmt.Sprintf("%d performance and %d efficiency cores", f.PerformanceCores.Value, f.EfficiencyCores.Value)
	}
	if f.GPUCores.Known && f.GPUCores.Value > 0 {
		s += fmt.Sprintf(", %d GPU cores", f.GPUCores.Value)
	}
	return s
}

func pressure(f machine.Facts) string {
	if !f.Pressure.Known || f.Pressure.Value == "normal" {
		return ""
	}
	return "memory pressure " + f.Pressure.Value
}

package main

import (
	"fmt"
	"io"
	"strings"

	"slipway/installer"
	"slipway/installer/machine"
	"slipway/installer/operate"
	"slipway/installer/plan"
	"slipway/termtext"
	"slipway/units"
)

// What a person reads before the question: one screen of 24 lines at 80 columns. --verbose prints all of it instead,
// see show_verbose.go, and docs/plan-and-apply.md explains each line.

// toyWords are said wherever the model is the embedded one.
const toyWords = "Pocket is a toy to show that everything works; it is no chat model."

// showProposal prints machine, proposal and plan before the question. It goes to standard error: the result comes at
// the end.
func (s *session) showProposal(p installer.Prepared) {
	if s.json || s.events {
		return
	}
	s.printProposal(s.page(s.errOut), p)
}

func (s *session) printProposal(w io.Writer, p installer.Prepared) {
	if s.verbose {
		printVerbose(w, p)
		return
	}
	printMachine(w, p.Facts)
	fmt.Fprintln(w)
	printChoice(w, p)
	fmt.Fprintln(w)
	printPlan(w, p, s.environment.UserHome, s.argv(s.again([]string{"uninstall"})...))
}

// printMachine says in two lines what of the machine decides.
func printMachine(w io.Writer, f machine.Facts) {
	memory := "memory not known"
	if f.RAM.Known {
		memory = units.GiB(f.RAM.Value) + " of memory"
	}
	if limit := f.MemoryLimit; limit.Known && limit.Value > 0 {
		memory += fmt.Sprintf(", %s of it for this container", units.GiB(limit.Value))
	}
	metal := "no Metal"
	if f.WorkingSet.Known {
		may := "may use"
		if !f.WorkingSet.Certain {
			may = "may probably use"
		}
		metal = fmt.Sprintf("Metal %s %s", may, units.GiB(f.WorkingSet.Value))
	}
	fmt.Fprintf(w, "Machine: %s\n", listed(chipWords(orElse(text(f.Chip), text(f.Model))), memory, metal))
	disk := "free disk space not known"
	if f.DiskFree.Known {
		disk = units.Short(f.DiskFree.Value) + " free on the disk"
	}
	power := ""
	if text(f.Power) == "battery" {
		power = "on battery"
	}
	fmt.Fprintf(w, "         %s\n", listed(strings.TrimSpace(text(f.System)+" "+text(f.Version)), disk, power,
		pressureWords[text(f.Pressure)]))
}

// pressureWords say how the system judges its memory.
var pressureWords = map[string]string{"warning": "memory is tight", "critical": "memory is nearly used up"}

// chipWords leave the marks of trade out of a processor's name.
func chipWords(name string) string { return strings.NewReplacer("(R)", "", "(TM)", "").Replace(name) }

// printChoice says which model and profile, why, and what else there is.
func printChoice(w io.Writer, p installer.Prepared) {
	m := p.Plan.Decisions.Model
	fmt.Fprintf(w, "Model:   %s (%s, licence %s)\n", m.ID, units.Short(m.Bytes), m.License)
	if p.Manifest.Embedded {
		fmt.Fprintf(w, "         %s\n", toyWords)
	}
	if p.Proposal.Why != "" {
		fmt.Fprintf(w, "         %s\n", p.Proposal.Why)
	}
	if p.TokensPerSecond > 0 {
		fmt.Fprintf(w, "         %s\n", estimateWords(p.TokensPerSecond))
	}
	fmt.Fprintln(w, p.Price)
	if p.Proposal.Result.Short != "" {
		fmt.Fprintln(w, p.Proposal.Result.Short)
	}
	if p.DraftCost != "" {
		fmt.Fprintln(w, p.DraftCost)
	}
	if p.Plan.Decisions.Request.MemoryBytes > 0 { // what was asked for and cannot be had
		for _, note := range p.Proposal.Result.Notes {
			fmt.Fprintf(w, "         %s\n", sentence(note))
		}
	}
	for _, other := range p.Alternatives {
		which, what, _ := strings.Cut(other.Sentence, ": ")
		fmt.Fprintf(w, "%-8s %s\n", which+":", what)
	}
}

func estimateWords(tokensPerSecond float64) string {
	return fmt.Sprintf("About %.1f tokens a second here (estimated; measured after the start).", tokensPerSecond)
}

// printPlan is a short line an action, and what a person must know before agreeing.
func printPlan(w io.Writer, p installer.Prepared, userHome string, undo []string) {
	fmt.Fprintf(w, "Plan (%s):\n", shortDigest(p.Plan.Digest))
	for i, a := range p.Plan.Actions {
		fmt.Fprintf(w, "  %d. %s%s\n", i+1, shortAction(p, a, userHome), stateMark(p, a))
	}
	if d := p.Plan.Decisions; d.Request.Launch && d.Profile.CacheDiskBytes > 0 {
		fmt.Fprintf(w, "Conversations are kept on disk, %s at most (off: --disk-cache off).\n",
			units.Short(d.Profile.CacheDiskBytes))
	}
	for _, sentence := range operate.CallersOf(p.Plan.Decisions.Home, p.Plan.Decisions.Request).Sentences {
		fmt.Fprintln(w, sentence)
	}
	others := "; no other program is stopped"
	if len(p.Plan.Decisions.Stops) > 0 {
		others = ""
		fmt.Fprintf(w, "Stops: %s\n", orElse(p.StopLines, "only the servers that are named here."))
		if file := p.Plan.Decisions.RebootAgent; file != "" {
			fmt.Fprintf(w, "After a reboot, %s does it.\n", tilde(file, userHome))
		}
	}
	if p.Contended != "" {
		fmt.Fprintf(w, "Note: %s\n", termtext.Line(p.Contended))
	}
	fmt.Fprintf(w, "To undo it, run %s. No sudo%s. For all details add --verbose.\n", shellWords(undo), others)
}

// shortAction is an action in one line.
func shortAction(p installer.Prepared, a plan.Action, userHome string) string {
	d := p.Plan.Decisions
	for _, part := range d.Parts() {
		switch a.Kind {
		case part.ListKind:
			return shortList(p, part)
		case part.FilesKind:
			return shortFiles(p, part, userHome)
		}
	}
	switch a.Kind {
	case plan.HomeAction:
		return fmt.Sprintf("Make the folder %s.", tilde(d.Home, userHome))
	case plan.EngineAction:
		if d.Engine.Origin == plan.Prebuilt {
			return "Copy the prebuilt server."
		}
		return "Compile the server, up to 3 minutes the first time."
	case plan.SettingsAction:
		return "Write the settings."
	case plan.StopsAction:
		var names []string
		for _, s := range d.Stops {
			names = append(names, fmt.Sprintf("%s on port %d", s.Title, s.Port))
		}
		return fmt.Sprintf("Stop %s while slipway runs.", strings.Join(names, ", "))
	case plan.LaunchAction:
		return fmt.Sprintf("Start the server on 127.0.0.1:%d, its monitor on port %d.", d.Request.Port,
			d.Request.MonitorPort)
	}
	return a.Sentence
}

func shortList(p installer.Prepared, m plan.Part) string {
	if !m.ProvenOnly {
		return fmt.Sprintf("Get the %s's file list from %s; files without proof are allowed.", m.What, p.Host)
	}
	return fmt.Sprintf("Get the %s's file list from %s and verify it.", m.What, p.Host)
}

func shortFiles(p installer.Prepared, m plan.Part, userHome string) string {
	missing, known := p.DownloadBytesOf(m), p.ListKnownOf(m)
	switch {
	case m.Embedded:
		return fmt.Sprintf("Write the model, %s, from this program.", units.Short(m.Bytes))
	case m.InPlace != "":
		return fmt.Sprintf("Check every hash of the model in %s and use it there; it must stay as it is.",
			tilde(m.InPlace, userHome))
	case known && missing == 0:
		return fmt.Sprintf("Take the %s from this machine and check every hash.", m.What)
	case known && missing < m.DownloadBytes:
		return fmt.Sprintf("Download the missing %s of the %s and check every hash.", units.Short(missing), m.What)
	}
	return fmt.Sprintf("Download the %s, %s, and check every hash.", m.What, units.Short(m.DownloadBytes))
}

func stateMark(p installer.Prepared, a plan.Action) string {
	switch p.Assessment.States[a.ID] {
	case plan.Done:
		return " [done]"
	case plan.Blocked:
		return " [blocked]"
	}
	return ""
}

// tilde writes a path below the user's home folder as a shell does.
func tilde(path, userHome string) string {
	if rest, ok := strings.CutPrefix(path, userHome+"/"); ok && userHome != "" {
		return "~/" + rest
	}
	return path
}

// listed joins what is there with commas.
func listed(parts ...string) string {
	var there []string
	for _, part := range parts {
		if part != "" {
			there = append(there, termtext.Line(part))
		}
	}
	return strings.Join(there, ", ")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

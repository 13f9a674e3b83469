package plan

import (
	"fmt"

	"slipway/units"
)

// DocsURL is the page that explains what stops a set-up, inside the repository.
const DocsURL = "docs/troubleshooting.md"

// checksOf gives one record per thing that a plan rests on.
func checksOf(p Plan, w World, s Assessment) []Check {
	d := p.Decisions
	fixOf := func(kinds ...BlockerKind) (string, []string) {
		for _, b := range s.Blockers {
			for _, k := range kinds {
				if b.Kind == k {
					return b.Fix, b.Command
				}
			}
		}
		return "", []string{}
	}
	record := func(id string, ok, fail bool, observed, expected string, kinds ...BlockerKind) Check {
		c := Check{ID: id, Observed: observed, Expected: expected, DocsURL: DocsURL + "#" + id}
		c.Fix, c.Command = fixOf(kinds...)
		switch {
		case fail:
			c.Status, c.Severity = "fail", "error"
		case ok:
			c.Status, c.Severity = "ok", "info"
		default:
			c.Status, c.Severity = "pending", "info"
			c.Fix = "slipway setup does this."
		}
		return c
	}
	home := "not made yet"
	if w.HomeReady {
		home = "made by slipway"
	}
	if why := orWords(w.HomeRefused, w.HomeConflict); why != "" {
		home = why
	}
	closed := hasBlocker(s, HomeBlocked) && w.HomeClosed != ""
	if closed {
		home = w.HomeClosed
	}
	model := "not installed"
	if w.ModelWhole {
		model = "whole, hashes checked"
	} else if why := orWords(w.ModelProblem, w.LockDamage); why != "" {
		model = why
	}
	engine := "not built"
	if w.EngineWhole {
		engine = "built, hash checked"
	} else if why := orWords(w.EngineProblem, w.EngineUntrusted); why != "" {
		engine = why
	}
	space := "unknown"
	if w.FreeKnown {
		space = units.Short(w.FreeBytes) + " free"
	}
	memory := orWords(w.NotFit, orWords(d.Profile.Sentence, "fits"))
	server := "not running"
	switch {
	case w.ServerRunning:
		server = "answers"
	case w.ServerHung:
		server = fmt.Sprintf("runs and does not answer (pid %d)", w.OurServerPID)
	case w.PortTaken:
		server = "the port is in use by " + orWords(w.PortOwner, "another program")
	case w.MonitorTaken:
		server = "the monitor's port is in use by " + orWords(w.MonitorOwner, "another program")
	case w.StoppedBy != "":
		server = "stopped by the slipway of " + w.StoppedBy + ", which starts it again when its own server ends"
	case w.OurServerPID != 0:
		server = fmt.Sprintf("runs with other settings (pid %d)", w.OurServerPID)
	}
	spaceFails := hasBlocker(s, SpaceBlocked)
	checks := []Check{
		record("home", w.HomeReady, closed || w.HomeRefused != "" || w.HomeConflict != "", home,
			"a folder of ours at "+d.Home, HomeBlocked, FolderBlocked),
		record("memory", w.NotFit == "", w.NotFit != "", memory, "the model, its state and a window fit",
			MemoryBlocked),
		record("space", !spaceFails && w.FreeKnown, spaceFails, space, units.Short(needBytes(p, w))+" still needed",
			SpaceBlocked),
		record("model", w.ModelWhole, !w.ModelWhole && w.ModelProblem != "", model,
			d.Model.ID+" in "+orWords(d.Model.Folder, "models"), ModelBlocked),
		record("engine", w.EngineWhole, !w.EngineWhole && w.EngineProblem+w.EngineUntrusted != "", engine,
			"slipway-server, built from source or prebuilt", EngineBlocked, TrustBlocked),
		record("settings", w.SettingsWhole, false, map[bool]string{true: "as planned",
			false: "not written or different"}[w.SettingsWhole], SettingsPath+" says what is planned"),
	}
	if d.Draft != nil {
		draft := "not installed"
		if w.Draft.Whole {
			draft = "whole, hashes checked"
		}
		checks = append(checks, record("draft", w.Draft.Whole, false, draft, d.Draft.ID+" in "+d.Draft.Folder))
	}
	if w.JournalDamage != "" {
		checks = append(checks, record("journal", false, true, w.JournalDamage, "no plan is open, or its "+
			"journal is whole",
			JournalBlocked))
	}
	if w.ReceiptDamage != "" {
		c := record("receipts", false, true, w.ReceiptDamage, "every receipt is as slipway wrote it")
		c.Fix, c.Command = "Set-up sets it aside and writes a new one.", []string{"slipway", "setup"}
		checks = append(checks, c)
	}
	if d.Request.Launch {
		c := record("server", w.ServerRunning, w.ServerHung || hasBlocker(s, PortBlocked), server,
			fmt.Sprintf("our server answers on 127.0.0.1:%d", d.Request.Port), PortBlocked)
		if w.ServerHung {
			c.Fix, c.Command = "slipway down stops it, and slipway up starts it again.", []string{"slipway", "down"}
		}
		checks = append(checks, c)
	}
	if len(d.Stops) > 0 {
		checks = append(checks, record("neighbors", w.StopsDone, hasBlocker(s, StopBlocked),
			orWords(orWords(w.StopsProblem, w.StopLines), "stopped, and started again when slipway stops"),
			"the servers in the way are stopped while ours runs", StopBlocked))
	}
	if w.Contended != "" {
		checks = append(checks, Check{ID: "neighbors", Status: "unknown", Severity: "warning", Observed: w.Contended,
			Expected: "the memory that the plan counts on is free", Command: []string{"slipway", "neighbors"},
			DocsURL: "docs/neighbours.md"})
	}
	if !w.FreeKnown {
		for i := range checks {
			if checks[i].ID == "space" {
				checks[i].Status, checks[i].Severity, checks[i].Fix = "unknown", "warning", ""
			}
		}
	}
	return checks
}

func hasBlocker(s Assessment, kind BlockerKind) bool {
	for _, b := range s.Blockers {
		if b.Kind == kind {
			return true
		}
	}
	return false
}

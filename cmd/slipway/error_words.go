package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"slipway/checks/suite"
	"slipway/fault"
	"slipway/installer/launch"
	"slipway/installer/operate"
	"slipway/installer/plan"
	"slipway/units"
)

// Errors whose words need their facts. The others are worded by their step: see next_steps.go.

// explainWithFacts words such an error; nil for others.
func explainWithFacts(err error) *failure {
	if e, ok := errors.AsType[*operate.RolledBackError](err); ok {
		return explainRolledBack(e)
	}
	if e, ok := errors.AsType[*operate.BlockedError](err); ok {
		return explainBlocked(e)
	}
	if e, ok := errors.AsType[*operate.ConsentError](err); ok {
		return &failure{code: exitConsent, what: sentence(e.Error()), details: e.Plan, next: []string{"plan"},
			then: "Nothing was done. Show the plan to the person, then add " + missingFlags(e.Needed.Classes) +
				", or apply the plan by its digest."}
	}
	if e, ok := errors.AsType[*operate.GarbageError](err); ok {
		return &failure{code: exitConsent, what: fmt.Sprintf("%d files of %s are not needed.", len(e.Answer.Garbage),
			units.Bytes(e.Answer.Bytes)),
			then: "Nothing was done. See them with slipway gc --dry-run; remove them with --yes.",
			next: []string{"gc", "--dry-run"}, details: e.Answer}
	}
	if e, ok := errors.AsType[*operate.PlanFileError](err); ok {
		return explainPlanFile(e)
	}
	if e, ok := errors.AsType[*suite.UnfinishedError](err); ok {
		f := *explain(e.Err)
		f.then = strings.TrimSpace(f.then + " What was answered is kept in " + e.File + "; the same command continues.")
		return &f
	}
	return nil
}

// explainBlocked words the first blocker; the others are in the details.
func explainBlocked(e *operate.BlockedError) *failure {
	first := e.Blockers[0]
	f := &failure{code: int(e.Class), what: first.Sentence, then: "Nothing was done. " + first.Fix,
		details: e.Details()}
	if len(first.Command) > 1 {
		f.next = first.Command[1:]
	}
	return f
}

// missingFlags names the flags that give what was not granted.
func missingFlags(classes []plan.Class) string {
	var flags []string
	for _, class := range classes {
		flag := "--yes"
		switch class {
		case plan.Unproven:
			flag = "--accept-told"
		case plan.Stop:
			flag = "--allow-stop"
		}
		if !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return strings.Join(flags, " and ")
}

// explainRolledBack words a failed run and what was undone of it.
func explainRolledBack(e *operate.RolledBackError) *failure {
	f := explain(e.Err)
	switch e.ProblemAt {
	case operate.UndoSettings:
		f.then = fmt.Sprintf("The old settings could not be written back: %v", e.Problem)
		return f
	case operate.UndoPlan:
		f.then = fmt.Sprintf("The old settings are back, and the plan that failed could not be closed: %v", e.Problem)
		return f
	case operate.UndoServer:
		f.then = fmt.Sprintf("The old settings are back, and the old server could not be started again: %v", e.Problem)
		f.next, f.step = []string{"up"}, ""
		return f
	}
	if e.SettingsBack {
		if e.Verb == "upgrade" && errors.As(e.Err, new(*launch.UnfitError)) {
			f.then, f.next = "Fix the source, then run the same command again.", []string{"status"}
		}
		f.then = "The old settings are back. " + f.then
	}
	switch e.Server {
	case operate.ServerRestarted:
		f.then = "The old server runs again. " + f.then
	case operate.ServerKept:
		f.then = "The old server is still running. " + f.then
	}
	return f
}

// explainPlanFile words a --out that cannot be written.
func explainPlanFile(e *operate.PlanFileError) *failure {
	f := &failure{code: int(e.Fault().Class), what: fmt.Sprintf("The plan cannot be written to %q: %s.", e.File,
		reasonOf(e.Err)), then: "Give --out another file."}
	switch info, lookErr := os.Stat(e.File); {
	case lookErr == nil && info.IsDir():
		f.code, f.what, f.then = exitUsage, fmt.Sprintf("The plan cannot be written to %q: that is a folder.", e.File),
			"Give --out the name of a file in it."
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
	case errors.Is(e.Err, fs.ErrNotExist):
		f.what, f.then = fmt.Sprintf("The plan cannot be written to %q: its folder does not exist.", e.File),
			"Make the folder, or give --out another file."
	}
	return f
}

// codeOf is the exit code of an answer.
func codeOf(answer any) int {
	if a, ok := answer.(interface{ Class() fault.Class }); ok {
		return int(a.Class())
	}
	return exitOK
}

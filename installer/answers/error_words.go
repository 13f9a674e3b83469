package answers

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
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/operate"
	"slipway/installer/plan"
	"slipway/termtext"
	"slipway/units"
)

// Errors whose words need their facts. The others are worded by their step: see next_steps.go.

// withFacts words such an error; nil for others.
func withFacts(err error) *Failure {
	if e, ok := errors.AsType[*operate.RolledBackError](err); ok {
		return explainRolledBack(e)
	}
	if e, ok := errors.AsType[*apply.ReceiptError](err); ok {
		return &Failure{Code: int(fault.Integrity), What: termtext.Sentence(e.Error()), Step: fault.RewriteReceipt,
			Then: steps[fault.RewriteReceipt].then + " Or remove the whole home by hand: " + e.Home + ".",
			Next: slices.Clone(steps[fault.RewriteReceipt].next)}
	}
	if e, ok := errors.AsType[*operate.BlockedError](err); ok {
		return explainBlocked(e)
	}
	if e, ok := errors.AsType[*operate.ConsentError](err); ok {
		return &Failure{Code: int(fault.Consent), What: termtext.Sentence(e.Error()), Details: e.Plan, Next: []string{
			"plan"},
			Then: "Nothing was done. Show the plan to the person, then add " + missingFlags(e.Needed.Classes) +
				", or apply the plan by its digest."}
	}
	if e, ok := errors.AsType[*installer.DownloadError](err); ok {
		return explainDownload(e)
	}
	if e, ok := errors.AsType[*operate.GarbageError](err); ok {
		return &Failure{Code: int(fault.Consent), What: fmt.Sprintf("%d files of %s are not needed.",
			len(e.Answer.Garbage),
			units.Short(e.Answer.Bytes)),
			Then: steps[fault.ShowGarbage].then,
			Next: []string{"gc", "--dry-run"}, Details: e.Answer}
	}
	if e, ok := errors.AsType[*operate.PlanFileError](err); ok {
		return explainPlanFile(e)
	}
	if e, ok := errors.AsType[*suite.UnfinishedError](err); ok {
		f := *Explain(e.Err)
		f.Continues = true
		f.Then = strings.TrimSpace(f.Then + " What was answered is kept in " + e.File + "; the same command continues.")
		return &f
	}
	return nil
}

// explainDownload names a size that suffices, and a model for which the allowed one does.
func explainDownload(e *installer.DownloadError) *Failure {
	enough := units.AtLeast(e.NeedBytes)
	f := &Failure{Code: int(e.Fault().Class), What: termtext.Sentence(e.Error()),
		Then: "To allow it, add --max-download " + enough, Next: []string{"setup", "--max-download", enough}}
	if e.Smaller != "" {
		f.Then += ". Or take a smaller model: --model " + e.Smaller
	}
	f.Then += "."
	if e.Plan != nil {
		f.Then, f.Details = "Nothing was done. "+f.Then, e.Plan
	}
	return f
}

// explainBlocked words the first blocker; the others are in the details.
func explainBlocked(e *operate.BlockedError) *Failure {
	first := e.Blockers[0]
	f := &Failure{Code: int(e.Class), What: first.Sentence, Then: "Nothing was done. " + first.Fix,
		Details: e.Details()}
	if len(first.Command) > 1 {
		f.Next = first.Command[1:]
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
func explainRolledBack(e *operate.RolledBackError) *Failure {
	f := Explain(e.Err)
	switch e.ProblemAt {
	case operate.UndoSettings:
		f.Then = fmt.Sprintf("The old settings could not be written back: %v", e.Problem)
		return f
	case operate.UndoPlan:
		f.Then = fmt.Sprintf("The old settings are back, and the plan that failed could not be closed: %v", e.Problem)
		return f
	case operate.UndoServer:
		f.Then = fmt.Sprintf("The old settings are back, and the old server could not be started again: %v", e.Problem)
		f.Next, f.Step = []string{"up"}, ""
		return f
	}
	if e.SettingsBack {
		if e.Verb == "upgrade" && errors.As(e.Err, new(*launch.UnfitError)) {
			f.Then, f.Next = "Fix the source, then run the same command again.", []string{"status"}
		}
		f.Then = "The old settings are back. " + f.Then
	}
	switch e.Server {
	case operate.ServerRestarted:
		f.Then = "The old server runs again. " + f.Then
	case operate.ServerKept:
		f.Then = "The old server is still running. " + f.Then
	}
	return f
}

// explainPlanFile words a --out that cannot be written.
func explainPlanFile(e *operate.PlanFileError) *Failure {
	f := &Failure{Code: int(e.Fault().Class), What: fmt.Sprintf("The plan cannot be written to %q: %s.", e.File,
		fault.Innermost(e.Err)), Then: "Give --out another file."}
	switch info, lookErr := os.Stat(e.File); {
	case lookErr == nil && info.IsDir():
		f.Code, f.What, f.Then = int(fault.Usage), fmt.Sprintf("The plan cannot be written to %q: that is a folder.",
			e.File),
			"Give --out the name of a file in it."
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EDQUOT):
	case errors.Is(e.Err, fs.ErrNotExist):
		f.What, f.Then = fmt.Sprintf("The plan cannot be written to %q: its folder does not exist.", e.File),
			"Make the folder, or give --out another file."
	}
	return f
}

// ClassOf is the class of an answer.
func ClassOf(answer any) fault.Class {
	if a, ok := answer.(interface{ Class() fault.Class }); ok {
		return a.Class()
	}
	return fault.OK
}

package neighbor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// programChanged reports whether the file that would be executed is not the one that was stopped, and the user did not
// allow that. One that cannot be read is left to the attempt, which says why.
func (s *System) programChanged(r record.Record) bool {
	if r.Channel != record.ChannelArgv || s.ChangedPrograms {
		return false
	}
	sum, err := record.SumOf(r.Program)
	return err == nil && sum.String() != r.ProgramSHA256
}

// changedProgramOutcome: after an upgrade the same path holds another program. The user decides whether to start it.
func (s *System) changedProgramOutcome(r record.Record) Outcome {
	r.State, r.Why, r.At = record.StateFailed, "its program "+quoted(r.Program)+" changed since it was stopped",
		time.Now()
	s.folder().Update(r)
	return outcome(r, Failed, "%s is not started: its program %s changed since it was stopped, as an upgrade does. "+
		"If that is what you want, run `slipway restore --changed-program`, or start it yourself, which counts as "+
		"restored. Its record is kept.", wordsOf(r).name, quoted(r.Program))
}

// restoreNotes says what will differ after a restore, as sentences to append. It changes nothing.
func (s *System) restoreNotes(r record.Record) string {
	if r.Channel != record.ChannelArgv {
		return ""
	}
	var words strings.Builder
	if s.programChanged(r) {
		fmt.Fprintf(&words, " Its program %s changed since it was stopped: add --changed-program to start it "+
			"anyway.", quoted(r.Program))
	}
	switch info, err := os.Stat(r.Cwd); {
	case r.CwdGone:
		words.WriteString(" Its working folder was gone before it was stopped; it starts in your home folder.")
	case err == nil && info.IsDir():
	case r.CwdNeeded:
		fmt.Fprintf(&words, " Its working folder %s is gone and needed: create it first.", quoted(r.Cwd))
	default:
		fmt.Fprintf(&words, " Its working folder %s is gone; it starts in your home folder.", quoted(r.Cwd))
	}
	if watched, err := s.folder().Held(record.WatchName(r.ID)); err == nil && !watched {
		if missed, _ := withoutValue(r.EnvNames); len(missed) > 0 {
			fmt.Fprintf(&words, " It starts without %s, whose values were not kept.", strings.Join(missed, ", "))
		}
	}
	return words.String()
}

// differences says, from a look at it, how a restored neighbour differs from before. One that its user has started is
// as its user wants it.
func (s *System) differences(r record.Record, now situation) string {
	if now.state != runsAgain || r.Channel != record.ChannelArgv {
		return ""
	}
	if ours, err := s.folder().Held(record.LockName(r.ID)); err != nil || !ours {
		return ""
	}
	d, err := process.Look(now.pid)
	if err != nil {
		return ""
	}
	var words strings.Builder
	switch {
	case r.CwdGone:
		words.WriteString(" Its working folder was gone before it was stopped; it runs in your home folder.")
	case d.Cwd != "" && d.Cwd != r.Cwd:
		fmt.Fprintf(&words, " Its working folder %s is gone; it runs in %s.", quoted(r.Cwd), quoted(d.Cwd))
	}
	if d.Env == nil {
		return words.String()
	}
	gone := slices.DeleteFunc(slices.Clone(r.EnvNames), func(name string) bool {
		return slices.ContainsFunc(d.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	})
	if missed, _ := withoutValue(gone); len(missed) > 0 {
		fmt.Fprintf(&words, " It runs without %s: their values were in memory only, and lost.",
			strings.Join(missed, ", "))
	}
	return words.String()
}

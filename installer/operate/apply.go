package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"time"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/consent"
	"slipway/installer/plan"
)

// ApplyInput is the input of Apply and Detach.
type ApplyInput struct {
	File            []byte `json:"file"`   // a plan file's bytes
	Path            string `json:"plan"`   // of the file, absolute; empty: not known
	Digest          string `json:"digest"` // that the person agreed to
	Source          string `json:"source"` // folder of slipway's source; never from the file
	ModelDir        string `json:"model_dir"`
	SetAsideJournal bool   `json:"set_aside_journal"`
}

// Apply carries out exactly the plan of a file: its request is planned again, compared, and consented to by its digest.
func (o *Operator) Apply(ctx context.Context, in ApplyInput) (SetupAnswer, error) {
	prepared, err := o.preparedFile(ctx, in)
	if err != nil {
		return SetupAnswer{}, err
	}
	if settled(prepared) {
		return o.nothingToDo(ctx, prepared)
	}
	done, err := o.applyOrRollBack(ctx, prepared)
	if err != nil {
		return SetupAnswer{}, err
	}
	return o.finish(ctx, prepared, done)
}

// preparedFile is a plan file that may be applied now.
func (o *Operator) preparedFile(ctx context.Context, in ApplyInput) (installer.Prepared, error) {
	if in.File == nil || in.Digest == "" {
		return installer.Prepared{}, wrong("apply needs --plan FILE and --digest DIGEST")
	}
	if in.SetAsideJournal {
		if err := o.SetAsideJournal(); err != nil {
			return installer.Prepared{}, err
		}
	}
	prepared, err := o.planAgain(ctx, in)
	if err != nil {
		return prepared, err
	}
	if err := consent.Digest(in.Digest).Check(prepared.Plan, prepared.Assessment); err != nil {
		return prepared, err
	}
	if prepared.Assessment.CanApply {
		return prepared, prepared.HubProblem()
	}
	blocked := o.blocked(prepared.Assessment)
	switch blocked.Blockers[0].Kind {
	case plan.StopBlocked, plan.JournalBlocked:
	default: // a neighbour that works now: refused, as everywhere
		blocked.Class = fault.Stale // the plan was good when it was made: a precondition does not hold any more
	}
	return prepared, blocked
}

// planWords are the arguments of plan that ask for what a plan file asks for, and write it there again.
func (in ApplyInput) planWords(r plan.Request) (words []string) {
	add := func(flag, value string, given bool) {
		if given {
			words = append(words, flag)
			if value != "" {
				words = append(words, value)
			}
		}
	}
	add("--model", r.Model, r.Model != "")
	add("--profile", r.Profile, r.Profile != "")
	add("--port", strconv.Itoa(r.Port), r.Port != 0)
	add("--monitor-port", strconv.Itoa(r.MonitorPort), r.MonitorPort != 0)
	add("--no-launch", "", r.Model != "" && !r.Launch)
	add("--accept-told", "", r.AcceptUnproven)
	add("--in-place", "", r.InPlace)
	for _, kind := range r.AllowStop.List() {
		add("--allow-stop", kind, true)
	}
	add("--accept-loss", "", r.AcceptLoss)
	add("--idle-for", (time.Duration(r.IdleForS) * time.Second).String(), r.IdleForS != 0)
	add("--memory", sizeWord(r.MemoryBytes), r.MemoryBytes != 0)
	add("--draft", r.Draft, r.Draft != "")
	add("--disk-cache", "off", r.DiskCacheBytes == plan.DiskCacheOff)
	add("--disk-cache", sizeWord(r.DiskCacheBytes), r.DiskCacheBytes > 0)
	source, err := filepath.Abs(in.Source)
	add("--source", source, in.Source != "" && err == nil)
	add("--model-dir", in.ModelDir, in.ModelDir != "")
	add("--out", in.Path, in.Path != "")
	return words
}

// sizeWord is a size as a flag takes it, exactly.
func sizeWord(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", n>>30)
	}
	return fmt.Sprintf("%dB", n)
}

// planAgain makes the plan again from the file's request. It refuses a file that is not, byte for byte, what that plan
// writes, or whose digest is not the one that was agreed to. Home and source come from the caller, never from the file.
func (o *Operator) planAgain(ctx context.Context, in ApplyInput) (prepared installer.Prepared, err error) {
	request, home, digest, err := plan.ReadFile(in.File)
	defer func() {
		again := in.planWords(request)
		if e, ok := errors.AsType[*plan.ErrFile](err); ok {
			e.Again = again
		}
		if e, ok := errors.AsType[*plan.ChangedError](err); ok {
			e.Again = again
		}
	}()
	if err != nil {
		return installer.Prepared{}, err
	}
	if digest != in.Digest {
		return installer.Prepared{}, &plan.ErrFile{
			Why: fmt.Sprintf("it says %s, and --digest says %s", digest, in.Digest)}
	}
	asked, err := o.resolve()
	if err != nil {
		return installer.Prepared{}, err
	}
	if asked != home {
		return installer.Prepared{}, &plan.ErrFile{
			Why: fmt.Sprintf("it was made for the home %q, and this command means %q; give the same --home", home,
				asked)}
	}
	prepared, err = o.prepare(ctx, installer.Input{Request: request, Source: in.Source, ModelDir: in.ModelDir})
	if choice, ok := errors.AsType[*installer.ChoiceError](err); ok {
		return prepared, &plan.ErrFile{Why: choice.Why}
	}
	if err != nil {
		return prepared, err
	}
	if prepared.Plan.Digest != digest && plan.OfEarlierVersion(in.File) {
		return prepared, &plan.ErrFile{Why: "it was made by an earlier version of slipway, unknown to this one"}
	}
	if prepared.Plan.Digest != digest {
		if changed := whatChanged(in.File, prepared.Plan); len(changed) > 0 {
			return prepared, &plan.ChangedError{What: changed}
		}
		return prepared, &plan.ErrFile{Why: "its actions or its digest were changed"}
	}
	if !bytes.Equal(in.File, plan.WriteFile(prepared.Plan)) {
		return prepared, &plan.ErrFile{Why: "its text is not that of the plan with this digest: it was changed, or " +
			"another version of slipway wrote it"}
	}
	return prepared, nil
}

// whatChanged says which parts of the decisions differ now. The file is only compared.
func whatChanged(file []byte, now plan.Plan) []string {
	var then plan.Plan
	if err := json.Unmarshal(file, &then); err != nil {
		return nil
	}
	was, is := then.Decisions, now.Decisions
	var parts []string
	for _, part := range []struct {
		name     string
		was, now any
	}{
		{"the home", was.Home, is.Home},
		{"the platform", was.Target, is.Target},
		{"the model or its lock", was.Model, is.Model},
		{"the profile's numbers", was.Profile, is.Profile},
		{"the disk cache or the normalize rules", [2]any{was.Request.DiskCacheBytes, was.Request.Normalize},
			[2]any{is.Request.DiskCacheBytes, is.Request.Normalize}},
		{"the hosts and origins that are allowed", [2]any{was.Request.AllowHosts, was.Request.AllowOrigins},
			[2]any{is.Request.AllowHosts, is.Request.AllowOrigins}},
		{"the server's source or Go", was.Engine, is.Engine},
	} {
		if !reflect.DeepEqual(part.was, part.now) {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// applyOrRollBack carries a plan out, and undoes what a failed run changed of a working set-up.
func (o *Operator) applyOrRollBack(ctx context.Context, p installer.Prepared) (apply.Result, error) {
	old := o.whatServes(ctx)
	done, err := o.run(ctx, p)
	if err != nil {
		return done, o.rollBack(ctx, p, old, err)
	}
	return done, nil
}

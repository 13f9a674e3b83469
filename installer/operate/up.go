package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/plan"
)

// UpInput is what Up changes of the request that is set up; zero values keep it. What may be stopped is asked for each
// time.
type UpInput struct {
	Profile        string     `json:"profile"`
	Port           int        `json:"port"`
	MonitorPort    int        `json:"monitor_port"`
	AllowStop      plan.Kinds `json:"allow_stop"`
	AcceptLoss     bool       `json:"accept_loss"`
	IdleForS       int        `json:"idle_for_s"`
	DiskCacheBytes int64      `json:"disk_cache_bytes"` // plan.DiskCacheOff: none
	DiskCacheAuto  bool       `json:"disk_cache_auto"`  // choose the disk cache again
	Normalize      *string    `json:"normalize"`        // as plan.ReadNormalize gives it; "" ends the rules
	// as plan.ReadHosts and plan.ReadOrigins give them; "" ends them
	AllowHosts   *plan.Kinds `json:"allow_hosts"`
	AllowOrigins *plan.Kinds `json:"allow_origins"`
}

// UpgradeInput is the input of Upgrade.
type UpgradeInput struct {
	Yes    bool   `json:"yes"`    // allow writing, building and launching without a question
	Source string `json:"source"` // folder of slipway's source
}

// into changes the request that is set up. Error: *installer.ChoiceError.
func (in UpInput) into(request *installer.Input) error {
	request.Profile = cmp.Or(in.Profile, request.Profile)
	request.Port = cmp.Or(in.Port, request.Port)
	request.MonitorPort = cmp.Or(in.MonitorPort, request.MonitorPort)
	request.AllowStop, request.AcceptLoss, request.IdleForS = in.AllowStop, in.AcceptLoss, in.IdleForS
	request.DiskCacheBytes = cmp.Or(in.DiskCacheBytes, request.DiskCacheBytes)
	if in.DiskCacheAuto {
		request.DiskCacheAuto, request.DiskCacheBytes = true, 0
	}
	if in.Normalize != nil {
		request.NormalizeGiven, request.Normalize = true, *in.Normalize
	}
	if in.AllowHosts != nil {
		request.HostsGiven, request.AllowHosts = true, *in.AllowHosts
	}
	if in.AllowOrigins != nil {
		request.OriginsGiven, request.AllowOrigins = true, *in.AllowOrigins
	}
	return request.Check()
}

// request is the request that is set up.
func (o *Operator) request() (installer.Input, error) {
	set, err := o.Settings()
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotSetUp
	}
	if err != nil {
		return installer.Input{}, err
	}
	err = o.inHome(func(home *apply.Home) error { // what is wrong with the model's files is named first
		if err := apply.LockDamage(home, set.Decisions); err != nil {
			return err
		}
		_, err := apply.ModelFolder(home, set.Decisions.Model)
		return err
	})
	if err != nil {
		return installer.Input{}, err
	}
	request := installer.Input{Request: set.Decisions.Request, KeepEngine: true,
		ModelSetUp: true}
	request.Launch, request.AllowStop, request.AcceptLoss, request.IdleForS = true, "", false, 0
	return request, nil
}

// Up plans with what is set up and carries out what is left of it: settings and launch. Anything else is set-up's work.
func (o *Operator) Up(ctx context.Context, in UpInput) (SetupAnswer, error) {
	request, err := o.request()
	if err == nil {
		err = in.into(&request)
	}
	if err != nil {
		return SetupAnswer{}, err
	}
	o.restoreLeftBehind(ctx, request.AllowStop)
	prepared, err := o.prepare(ctx, request)
	if err != nil {
		return SetupAnswer{}, err
	}
	if !prepared.Assessment.CanApply {
		return SetupAnswer{}, o.blocked(prepared.Assessment)
	}
	for _, a := range prepared.Plan.Actions {
		switch a.Kind {
		case plan.SettingsAction, plan.StopsAction, plan.LaunchAction:
			continue
		}
		if prepared.Assessment.States[a.ID] != plan.Done {
			return SetupAnswer{}, &Error{Text: fmt.Sprintf("The %s is not as it was set up.", a.ID),
				Of: fault.Fault{Class: fault.NotReady, Step: fault.SetUpAgain}}
		}
	}
	var done apply.Result
	if prepared.Assessment.PendingCount() > 0 || prepared.Open {
		if done, err = o.applyOrRollBack(ctx, prepared); err != nil {
			return SetupAnswer{}, err
		}
	}
	done.Continued = false
	answer := o.setupAnswer(prepared, done)
	answer.Draft, err = o.knownDraft(ctx)
	return answer, err
}

// Upgrade plans with what is set up and the source available, carries that out, and removes the old engine once the new
// one answers. When the new one does not, the old settings come back and the old server runs again.
func (o *Operator) Upgrade(ctx context.Context, in UpgradeInput) (SetupAnswer, error) {
	if err := o.migrate(); err != nil {
		return SetupAnswer{}, err
	}
	request, err := o.request()
	if err != nil {
		return SetupAnswer{}, err
	}
	old := o.whatServes(ctx)
	request.KeepEngine, request.Source = false, in.Source
	prepared, err := o.prepare(ctx, request)
	if err != nil {
		return SetupAnswer{}, err
	}
	if !prepared.Assessment.CanApply {
		return SetupAnswer{}, o.blocked(prepared.Assessment)
	}
	if prepared.Assessment.PendingCount() == 0 {
		return o.nothingToDo(ctx, prepared)
	}
	o.Caller.ShowPlan(prepared)
	if err := o.consentTo(ctx, SetupInput{Input: request, Yes: in.Yes}, prepared); err != nil {
		return SetupAnswer{}, err
	}
	done, err := o.run(ctx, prepared)
	if err != nil {
		return SetupAnswer{}, o.rollBack(ctx, prepared, old, err)
	}
	if err := o.removeReplaced(old, prepared.Plan.Decisions.Engine.ID); err != nil {
		return SetupAnswer{}, err
	}
	return o.finish(ctx, prepared, done)
}

// removeReplaced removes the engine that was set up, where another one has replaced it.
func (o *Operator) removeReplaced(old serving, now string) error {
	if old.settings == nil || old.settings.Decisions.Engine.ID == now {
		return nil
	}
	return o.inHome(func(home *apply.Home) error { return apply.RemoveEngine(home, old.settings.Decisions.Engine.ID) })
}

// migrate brings the home's layout up to date before anything is read from it.
func (o *Operator) migrate() error {
	path, err := o.resolve()
	if err != nil {
		return err
	}
	done, err := apply.Migrate(path, o.Environment.UserHome)
	for _, what := range done {
		o.Caller.Say(what)
	}
	return err
}

package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/neighbor/record"
	"slipway/installer/plan"
	"slipway/termtext"
	"slipway/wire"
)

// StatusAnswer is the answer of Status.
type StatusAnswer struct {
	Home     string             `json:"home"`
	SetUp    bool               `json:"set_up"`
	Model    string             `json:"model"`
	Profile  string             `json:"profile"`
	Draft    string             `json:"draft"`   // that is set up; "none": nothing drafts
	Callers  Callers            `json:"callers"` // beside the programs of this machine
	Answer   *FirstAnswer       `json:"answer"`  // of the model, to set-up's question; null before
	Server   ServerStatus       `json:"server"`
	Live     *launch.Live       `json:"live"`      // what the server says of itself; null unless it runs and answers
	Damage   []string           `json:"damage"`    // what of our own files cannot be read, in sentences
	OpenPlan string             `json:"open_plan"` // digest of a plan that was begun and not finished, or empty
	Worker   *Worker            `json:"worker"`    // a slipway that works on this home now
	Job      *JobAnswer         `json:"job"`       // the newest detached apply
	Stopped  []neighbor.Outcome `json:"stopped_neighbors"`

	Toy      bool      `json:"-"` // the model is the embedded one
	NoHome   bool      `json:"-"` // nothing was ever set up there
	Damaged  []Damaged `json:"-"` // what Damage is made of
	Continue []string  `json:"-"` // argv that continues the open plan
}

// Callers are those that may ask beside the programs of this machine.
type Callers struct {
	AllowHosts   []string `json:"allow_hosts"`   // names for the Host header
	AllowOrigins []string `json:"allow_origins"` // of pages
	KeyFile      string   `json:"key_file"`      // with the key that those pages send; empty: there are none
	Sentences    []string `json:"-"`
}

// CallersOf says whom a request lets ask, in a home; "": the home is not known.
func CallersOf(home string, r plan.Request) Callers {
	c := Callers{AllowHosts: append([]string{}, r.AllowHosts.List()...),
		AllowOrigins: append([]string{}, r.AllowOrigins.List()...), Sentences: plan.CallersWords(r)}
	if len(c.AllowOrigins) > 0 {
		c.KeyFile = filepath.Join(home, filepath.FromSlash(plan.OriginKeyPath))
	}
	return c
}

// Damaged is a file of ours that cannot be used.
type Damaged struct {
	What DamagedFile
	Err  error
}

// DamagedFile is a kind of file of ours.
type DamagedFile string

// The files that Status reads.
const (
	DamagedSettings DamagedFile = "settings"
	DamagedServer   DamagedFile = "server"
	DamagedJournal  DamagedFile = "journal"
	DamagedReceipt  DamagedFile = "receipt"
	DamagedLock     DamagedFile = "lock"
)

// Class is OK while the server answers.
func (a StatusAnswer) Class() fault.Class {
	switch {
	case len(a.Damaged) > 0:
		return fault.Integrity
	case a.Server.State == launch.Running:
		return fault.OK
	}
	return fault.NotReady
}

// ServerStatus is how our server is.
type ServerStatus struct {
	State    launch.State `json:"state"`
	PID      int          `json:"pid"`
	Port     int          `json:"port"`
	API      string       `json:"api"`
	Monitor  string       `json:"monitor"` // the page; empty where it has none
	Started  string       `json:"started"`
	LaunchID string       `json:"launch_id"`
	Health   *wire.Health `json:"health"`
	// StoppedBy is the slipway of another home that stopped it; null: none.
	StoppedBy *StoppedBy `json:"stopped_by"`
}

// StoppedBy says which other slipway stopped our server for its own, and how the server comes back.
type StoppedBy struct {
	Home     string   `json:"home"` // of the other slipway
	Since    string   `json:"since"`
	Returns  bool     `json:"returns"` // the other slipway starts it again; false: that failed
	Sentence string   `json:"sentence"`
	Back     []string `json:"back"` // argv that brings it back now

	words []string // Back, without our name
}

func (o *Operator) stoppedBy(status launch.Status) *StoppedBy {
	by := status.StoppedBy
	if by == nil {
		return nil
	}
	a := &StoppedBy{Home: by.Home, Since: by.At.UTC().Format(time.RFC3339),
		Returns: status.Restore.State != record.StateFailed}
	if !a.Returns {
		a.words = []string{"up"}
		a.Back = o.Caller.Command(a.words...)
		a.Sentence = fmt.Sprintf("The slipway of %s stopped it at %s and could not start it again: %s.",
			termtext.Line(by.Home), by.At.Local().Format("15:04"), termtext.Name(status.Restore.Why, 400))
		return a
	}
	a.words = []string{"down", "--home", by.Home}
	a.Back = o.Caller.Command(a.words...)
	a.Sentence = fmt.Sprintf("The slipway of %s stopped it at %s for its own server, and starts it again when that "+
		"one ends.", termtext.Line(by.Home), by.At.Local().Format("15:04"))
	return a
}

// Worker is a slipway that holds the home's lock.
type Worker struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Since   string `json:"since"`
}

// Status says how set-up, server and background jobs are.
func (o *Operator) Status(ctx context.Context) (StatusAnswer, error) {
	path, err := o.resolve()
	if err != nil {
		return StatusAnswer{}, err
	}
	a := StatusAnswer{Home: path, Server: ServerStatus{State: launch.Stopped}, Damage: []string{},
		Stopped: []neighbor.Outcome{}, Callers: CallersOf(path, plan.Request{})}
	err = o.inHome(func(home *apply.Home) error { return o.fillStatus(ctx, home, &a) })
	if errors.Is(err, apply.ErrNoHome) {
		a.NoHome, err = true, nil
	}
	for _, damaged := range a.Damaged {
		a.Damage = append(a.Damage, termtext.Sentence(damaged.Err.Error())+" "+o.damageFix(damaged.What))
	}
	if open := o.OpenPlan(); open != nil {
		a.Continue = o.Caller.Command(open.Words...)
	}
	return a, err
}

// damageFix says what sets a damaged file of ours right.
func (o *Operator) damageFix(what DamagedFile) string {
	command := func(words ...string) string { return termtext.ShellWords(o.Caller.Command(words...)) }
	switch what {
	case DamagedSettings:
		return command("setup") + " writes it again and sets this one aside."
	case DamagedServer:
		return "The next " + command("up") + " sets it aside."
	case DamagedReceipt:
		return command("setup") + " sets it aside and writes a new one."
	case DamagedLock:
		return command("setup") + " writes it again."
	}
	return "Setting it aside loses nothing: " + command("setup", "--set-aside-journal") + "."
}

func (o *Operator) fillStatus(ctx context.Context, home *apply.Home, a *StatusAnswer) error {
	set, err := apply.ReadSettings(home)
	switch {
	case err == nil:
		a.SetUp, a.Model, a.Profile = true, set.Decisions.Model.ID, set.Decisions.Profile.Name
		a.Callers = CallersOf(home.Path, set.Decisions.Request)
		a.Toy, a.Draft = set.Decisions.Model.Embedded, set.Decisions.Profile.Draft
		if first := firstAnswer(home); first != nil && first.Model == a.Model {
			a.Answer = first
		}
	case errors.As(err, new(*apply.SettingsError)):
		a.Damaged = append(a.Damaged, Damaged{DamagedSettings, err})
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := o.fillServer(ctx, home, a); err != nil {
		return err
	}
	a.OpenPlan, err = apply.OpenDigest(home)
	switch {
	case errors.As(err, new(*apply.JournalError)):
		a.Damaged = append(a.Damaged, Damaged{DamagedJournal, err})
	case err != nil:
		return err
	}
	var receipt *apply.ReceiptError
	if _, err := home.Receipts(); errors.As(err, &receipt) {
		a.Damaged = append(a.Damaged, Damaged{DamagedReceipt, receipt})
	} else if err != nil {
		return err
	}
	if a.SetUp {
		if err := apply.LockDamage(home, set.Decisions); err != nil {
			a.Damaged = append(a.Damaged, Damaged{DamagedLock, err})
		}
	}
	if holder := home.Busy(); holder != nil {
		a.Worker = &Worker{holder.Process.PID, holder.Command, holder.Since.UTC().Format(time.RFC3339)}
	}
	if job, err := home.FindJob(""); err == nil {
		j := o.jobAnswer(home, job)
		a.Job = &j
	}
	if system, err := o.neighborhood(); err == nil {
		if pending, err := system.Pending(); err == nil {
			a.Stopped = pending
		}
	}
	return nil
}

func (o *Operator) fillServer(ctx context.Context, home *apply.Home, a *StatusAnswer) error {
	status, err := launch.Look(ctx, home.Root, home.Path)
	if err != nil {
		return err
	}
	if status.Damage != nil {
		a.Damaged = append(a.Damaged, Damaged{DamagedServer, status.Damage})
	}
	a.Server.State, a.Server.StoppedBy = status.State, o.stoppedBy(status)
	if status.State == launch.Stopped {
		return nil
	}
	r := status.Record
	at := addressesOf(r.Settings.Port, r.Settings.MonitorPort)
	a.Server = ServerStatus{State: status.State, PID: r.Process.PID, Port: r.Settings.Port, API: at.API,
		Monitor: at.Monitor,
		Started: r.Started.Format(time.RFC3339), LaunchID: r.LaunchID}
	if status.Health.Product != "" {
		a.Server.Health = &status.Health
	}
	if status.State == launch.Running {
		if live, err := launch.AskLive(ctx, r.Settings.Port); err == nil {
			a.Live = &live
		}
	}
	return nil
}

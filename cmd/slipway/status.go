package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/wire"
)

// statusAnswer is the data of status.
type statusAnswer struct {
	Home     string        `json:"home"`
	SetUp    bool          `json:"set_up"`
	Model    string        `json:"model"`
	Profile  string        `json:"profile"`
	Server   serverStatus  `json:"server"`
	Live     *launch.Live  `json:"live"`      // what the server tells of itself; null unless it runs and answers
	Damage   []string      `json:"damage"`    // what of our own files cannot be read, in sentences
	OpenPlan string        `json:"open_plan"` // digest of a plan that was begun and not finished, or empty
	Worker   *workerStatus `json:"worker"`    // a slipway that works on this home now
	Job      *jobAnswer    `json:"job"`       // the newest detached apply
	Stopped  []restoreView `json:"stopped_neighbors"`
}

type serverStatus struct {
	State    launch.State `json:"state"`
	PID      int          `json:"pid"`
	Port     int          `json:"port"`
	API      string       `json:"api"`
	Monitor  string       `json:"monitor"` // the page; empty where it has none
	Started  string       `json:"started"`
	LaunchID string       `json:"launch_id"`
	Health   *wire.Health `json:"health"`
}

type workerStatus struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Since   string `json:"since"`
}

func statusVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "how set-up, server and background jobs are", Flags: []cli.Flag{homeFlag(), watchFlag()},
		Action: func(c *cli.Context) error {
			if c.Bool("watch") && s.json {
				return usage("--watch and --json do not go together: a document has an end")
			}
			resolved, err := apply.ResolveHome(c.String("home"), s.place.UserHome)
			if err != nil {
				return err
			}
			answer := statusAnswer{Home: resolved, Server: serverStatus{State: launch.Stopped}, Damage: []string{}, Stopped: []restoreView{}}
			home, err := apply.OpenHome(resolved, s.place.UserHome)
			if errors.Is(err, apply.ErrNoHome) {
				return s.result(exitNotReady, answer, words("Nothing is set up in "+resolved+".", "Set it up: "+shellWords(s.argv(s.again([]string{"setup"})...))))
			}
			if err != nil {
				return err
			}
			defer home.Close()
			if c.Bool("watch") {
				return s.watchStatus(func() (statusAnswer, error) {
					a := answer
					_, err := s.fillStatus(c, home, &a)
					return a, err
				})
			}
			code, err := s.fillStatus(c, home, &answer)
			if err != nil {
				return err
			}
			return s.result(code, answer, func(w io.Writer) { printStatus(w, answer) })
		},
	}
}

func (s *session) fillStatus(c *cli.Context, home *apply.Home, a *statusAnswer) (int, error) {
	set, err := apply.ReadSettings(home)
	switch {
	case err == nil:
		a.SetUp, a.Model, a.Profile = true, set.Decisions.Model.ID, set.Decisions.Profile.Name
	case errors.As(err, new(*apply.SettingsError)):
		a.Damage = append(a.Damage, sentence(err.Error())+" "+s.printed(c, "setup")+" writes it again and sets this one aside.")
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	status, err := launch.Look(s.ctx, home.Root, home.Path)
	if err != nil {
		return 0, err
	}
	a.Server.State = status.State
	if status.State != launch.Stopped {
		r := status.Record
		a.Server = serverStatus{State: status.State, PID: r.Process.PID, Port: r.Settings.Port, API: addresses(r.Settings.Port, 0).API, Monitor: monitorAddress(r.Settings.MonitorPort),
			Started: r.Started.Format(time.RFC3339), LaunchID: r.LaunchID}
		if status.Health.Product != "" {
			a.Server.Health = &status.Health
		}
		if status.State == launch.Running {
			if live, err := launch.AskLive(s.ctx, r.Settings.Port); err == nil {
				a.Live = &live
			}
		}
	}
	if status.Damage != nil {
		a.Damage = append(a.Damage, sentence(status.Damage.Error())+" The next "+s.printed(c, "up")+" sets it aside.")
	}
	a.OpenPlan, err = apply.OpenDigest(home)
	switch {
	case errors.As(err, new(*apply.JournalError)):
		a.Damage = append(a.Damage, sentence(err.Error())+" Setting it aside loses nothing: "+s.printed(c, "setup", "--set-aside-journal")+".")
	case err != nil:
		return 0, err
	}
	if holder := home.Busy(); holder != nil {
		a.Worker = &workerStatus{holder.Process.PID, holder.Command, holder.Since.UTC().Format(time.RFC3339)}
	}
	if job, err := home.FindJob(""); err == nil {
		j := s.jobAnswer(c, job)
		a.Job = &j
	}
	if system, err := s.neighborhood(home.Path); err == nil {
		if pending, err := system.Pending(); err == nil {
			a.Stopped = restoreViews(pending)
		}
	}
	if len(a.Damage) > 0 {
		return exitDamage, nil
	}
	if status.State == launch.Running {
		return exitOK, nil
	}
	return exitNotReady, nil
}

func printStatus(w io.Writer, a statusAnswer) {
	defer printRestored(w, a.Stopped)
	if !a.SetUp {
		fmt.Fprintf(w, "Set-up in %s is not finished.\n", a.Home)
	} else {
		fmt.Fprintf(w, "Set up in %s: model %s, profile %s.\n", a.Home, a.Model, a.Profile)
	}
	fmt.Fprintln(w, serverSentence(a.Server))
	if a.Server.Monitor != "" && a.Server.State == launch.Running {
		fmt.Fprintln(w, "Its monitor: "+a.Server.Monitor)
	}
	if a.Live != nil {
		printLive(w, a.Live, recentShown)
	}
	for _, damage := range a.Damage {
		fmt.Fprintln(w, damage)
	}
	if a.OpenPlan != "" {
		fmt.Fprintf(w, "A plan is open (%s): the same command goes on.\n", shortDigest(a.OpenPlan))
	}
	if a.Worker != nil {
		fmt.Fprintf(w, "Working on this home now: %s (pid %d).\n", launch.Printable(a.Worker.Command), a.Worker.PID)
	}
	if a.Job != nil {
		fmt.Fprintf(w, "Newest background job %s: %s.\n", a.Job.Job, a.Job.State)
	}
}

func serverSentence(s serverStatus) string {
	switch s.State {
	case launch.Running:
		return fmt.Sprintf("The server answers at %s (pid %d, since %s; %d active, %d queued).", s.API, s.PID, s.Started, s.Health.Active, s.Health.Queued)
	case launch.Starting:
		return fmt.Sprintf("The server is starting (pid %d).", s.PID)
	case launch.Hung:
		return fmt.Sprintf("The server (pid %d) lives and does not answer; slipway down stops it, slipway up starts it again.", s.PID)
	case launch.Crashed:
		return "The server ended by itself; slipway logs shows its last words."
	}
	return "The server is stopped."
}

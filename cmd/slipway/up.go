package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/plan"
)

func stopCause(s *session) error { return context.Cause(s.ctx) }

func upVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "start the server that is set up",
		Flags: []cli.Flag{homeFlag(),
			&cli.StringFlag{Name: "profile", Usage: "run with another profile from now on"},
			&cli.IntFlag{Name: "port", Usage: "use another port from now on"},
			&cli.IntFlag{Name: "monitor-port", Usage: "use another port for the monitor from now on"},
			allowStopFlag(), acceptLossFlag(), idleForFlag(), diskCacheFlag(), normalizeFlag(),
			&cli.BoolFlag{Name: "attach", Usage: "stay, show the log, and stop the server at Ctrl-C"},
			eventsFlag()},
		Action: func(c *cli.Context) error { return up(s, c) },
	}
}

// up plans with what is set up and carries out what is left of it: settings and launch. Anything else is set-up's work.
func up(s *session, c *cli.Context) error {
	in, err := s.upRequest(c)
	if err != nil {
		return err
	}
	s.restoreLeftBehind(in)
	prepared, err := installer.Prepare(s.ctx, in, s.place)
	if err != nil {
		return err
	}
	if !prepared.Standing.CanApply {
		return blocked(prepared.Standing)
	}
	for _, a := range prepared.Plan.Actions {
		if a.Kind != plan.SettingsAction && a.Kind != plan.StopsAction && a.Kind != plan.LaunchAction && prepared.Standing.States[a.ID] != plan.Done {
			return &failure{code: exitNotReady, what: fmt.Sprintf("The %s is not as it was set up.", a.ID), then: "Mend it first: slipway setup.",
				next: append([]string{"setup"}, homeArgs(c)...)}
		}
	}
	var done apply.Result
	if prepared.Standing.PendingCount() > 0 || prepared.Open {
		old := s.whatServes(c.String("home"))
		if done, err = s.apply(prepared); err != nil {
			return s.rollBack(c, prepared, old, err, append([]string{"up"}, homeArgs(c)...))
		}
	}
	if c.Bool("attach") {
		return attach(s, c)
	}
	d := prepared.Plan.Decisions
	answer := setupAnswer{Digest: prepared.Plan.Digest, Changed: done.Changed, Home: d.Home, Model: d.Model.ID, Profile: d.Profile.Name,
		Server: addresses(d.Request.Port, d.Request.MonitorPort), Receipt: apply.ReceiptPath(prepared.Plan.Digest), Stop: s.argv(append([]string{"down"}, homeArgs(c)...)...)}
	return s.result(exitOK, answer, words("The server answers at "+answer.Server.API, "Its monitor: "+answer.Server.Monitor, "Stop it: "+shellWords(answer.Stop)))
}

func (s *session) upRequest(c *cli.Context) (installer.Input, error) {
	set, err := s.settings(c.String("home"))
	if errors.Is(err, fs.ErrNotExist) {
		err = apply.ErrNoHome
	}
	if err != nil {
		return installer.Input{}, err
	}
	if err := s.checkPlace(c.String("home"), set.Decisions.Model); err != nil {
		return installer.Input{}, err
	}
	in := installer.Input{Request: set.Decisions.Request, Home: c.String("home"), KeepEngine: true}
	in.Launch, in.AllowStop, in.AcceptLoss = true, plan.KindsOf(c.StringSlice("allow-stop")), c.Bool("accept-loss")
	if err := conversationsInto(c, &in); err != nil {
		return in, err
	}
	if in.IdleForS, err = idleForOf(c); err != nil {
		return in, err
	}
	if c.IsSet("profile") {
		in.Profile = c.String("profile")
	}
	if c.IsSet("port") {
		in.Port = c.Int("port")
	}
	if c.IsSet("monitor-port") {
		in.MonitorPort = c.Int("monitor-port")
		if in.MonitorPort == 0 {
			in.MonitorPort = -1
		}
	}
	if in.Port == in.MonitorPort {
		return in, usage(fmt.Sprintf("the port and the monitor's port are both %d", in.Port))
	}
	if err := installer.CheckPort("monitor-port", in.MonitorPort); err != nil {
		return in, err
	}
	return in, installer.CheckPort("port", in.Port)
}

// checkPlace names the file of a model used in place that is not what it was, before anything else is said of the model.
func (s *session) checkPlace(path string, m plan.Model) error {
	home, err := s.openHome(path)
	if err != nil {
		return err
	}
	defer home.Close()
	_, err = apply.ModelFolder(home, m)
	return err
}

// attach shows the server's log until Ctrl-C, SIGTERM or SIGHUP, which stop the server, or until the server ends.
func attach(s *session, c *cli.Context) error {
	home, err := s.openHome(c.String("home"))
	if err != nil {
		return err
	}
	defer home.Close()
	s.talk("Attached: Ctrl-C stops the server.")
	follow := newFollower(home.Root, s.out, 10)
	for {
		follow.more()
		if err := launch.RotateLog(home.Root, launch.LogLimitBytes); err != nil {
			return err
		}
		status, err := launch.Look(context.WithoutCancel(s.ctx), home.Root, home.Path)
		if err != nil {
			return err
		}
		switch status.State {
		case launch.Stopped:
			s.talk("The server was stopped by another command.")
			return nil
		case launch.Crashed:
			return &failure{code: exitNotReady, what: "The server ended by itself.", then: "The log: slipway logs.", next: append([]string{"logs"}, homeArgs(c)...)}
		}
		select {
		case <-s.ctx.Done():
			s.talk("Stopping the server.")
			if _, err := launch.Stop(context.Background(), home.Root, home.Path); err != nil {
				return err
			}
			follow.more()
			return nil
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// downAnswer is the data of down.
type downAnswer struct {
	WasRunning bool `json:"was_running"`
	PID        int  `json:"pid"`
	Killed     bool `json:"killed"` // our server did not end by itself within its time
	// Neighbors are the servers that were stopped for ours, and how starting them again went.
	Neighbors []restoreView `json:"neighbors"`
}

func downVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "stop our server", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			home, err := s.openHome(c.String("home"))
			if err != nil {
				return err
			}
			defer home.Close()
			lock, err := home.Lock("slipway down")
			if err != nil {
				return err
			}
			defer lock.Release()
			stopped, err := launch.Stop(s.ctx, home.Root, home.Path)
			if err != nil {
				return err
			}
			back, err := s.restoreAfter(home.Path)
			if err != nil {
				return err
			}
			views := restoreViews(back)
			return s.result(restoreCode(back, false), downAnswer{stopped.WasRunning, stopped.PID, stopped.Killed, views}, func(w io.Writer) {
				defer printRestored(w, views)
				switch {
				case !stopped.WasRunning:
					fmt.Fprintln(w, "The server was not running.")
				case stopped.Killed:
					fmt.Fprintf(w, "The server (pid %d) did not end in time and was killed; it is ours, and nothing is lost.\n", stopped.PID)
				default:
					fmt.Fprintf(w, "The server (pid %d) has stopped.\n", stopped.PID)
				}
			})
		},
	}
}

// logsAnswer is the data of logs.
type logsAnswer struct {
	File  string   `json:"file"`
	Lines []string `json:"lines"`
}

func logsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print the end of the server's log",
		Flags: []cli.Flag{homeFlag(), &cli.IntFlag{Name: "lines", Value: 50, Usage: "how many"},
			&cli.BoolFlag{Name: "follow", Usage: "go on printing until Ctrl-C"}},
		Action: func(c *cli.Context) error {
			home, err := s.openHome(c.String("home"))
			if err != nil {
				return err
			}
			defer home.Close()
			if n := c.Int("lines"); n < 1 || n > 100_000 {
				return usage(fmt.Sprintf("--lines is %d, and must be from 1 to 100000", n))
			}
			if c.Bool("follow") {
				if s.json {
					return usage("--follow and --json do not go together: a document has an end")
				}
				follow := newFollower(home.Root, s.out, c.Int("lines"))
				for s.ctx.Err() == nil && s.out.err == nil {
					follow.more()
					select {
					case <-s.ctx.Done():
					case <-time.After(300 * time.Millisecond):
					}
				}
				return nil
			}
			lines := launch.LastLines(home.Root, 0, c.Int("lines"))
			if lines == nil {
				lines = []string{}
			}
			return s.result(exitOK, logsAnswer{plan.ServerLog, lines}, func(w io.Writer) {
				words(lines...)(w)
				if len(lines) == 0 {
					fmt.Fprintln(s.errOut, "No server has written a log here yet; start one: "+s.printed(c, "up"))
				}
			})
		},
	}
}

// follower prints what a log gains.
type follower struct {
	root   *os.Root
	out    io.Writer
	offset int64
}

func newFollower(root *os.Root, out io.Writer, lines int) *follower {
	for _, line := range launch.LastLines(root, 0, lines) {
		fmt.Fprintln(out, line)
	}
	f := &follower{root: root, out: out}
	if info, err := root.Stat(plan.ServerLog); err == nil {
		f.offset = info.Size()
	}
	return f
}

func (f *follower) more() {
	log, err := f.root.Open(plan.ServerLog)
	if err != nil {
		return
	}
	defer log.Close()
	if info, err := log.Stat(); err != nil || info.Size() < f.offset {
		f.offset = 0 // it was rotated
	}
	data, err := io.ReadAll(io.NewSectionReader(log, f.offset, 1<<20))
	if err != nil {
		return
	}
	f.offset += int64(len(data))
	fmt.Fprint(f.out, printableText(string(data)))
}

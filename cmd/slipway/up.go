package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/operate"
	"slipway/installer/plan"
)

func upVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "start the server that is set up",
		Flags: []cli.Flag{homeFlag(),
			&cli.StringFlag{Name: "profile", Usage: "run with another profile from now on"},
			&cli.IntFlag{Name: "port", Usage: "use another port from now on"},
			&cli.IntFlag{Name: "monitor-port", Usage: "use another port for the monitor from now on"},
			allowStopFlag(), acceptLossFlag(), idleForFlag(), diskCacheFlag(), normalizeFlag(),
			allowHostFlag(), allowOriginFlag(),
			&cli.BoolFlag{Name: "attach", Usage: "stay, show the log, and stop the server at Ctrl-C"},
			eventsFlag()},
		Action: func(c *cli.Context) error {
			in, err := upInput(c)
			if err != nil {
				return err
			}
			answer, err := s.operator(c).Up(s.ctx, in)
			if err == nil && c.Bool("attach") {
				return s.attach()
			}
			return s.answer(answer, err, func(w io.Writer) {
				words("The server answers at "+answer.Server.API, "Its monitor: "+answer.Server.Monitor,
					"Stop it: "+shellWords(answer.Stop))(w)
			})
		},
	}
}

// upInput reads the flags of up.
func upInput(c *cli.Context) (operate.UpInput, error) {
	in := operate.UpInput{Profile: c.String("profile"), Port: c.Int("port"), MonitorPort: c.Int("monitor-port"),
		AllowStop: plan.KindsOf(c.StringSlice("allow-stop")), AcceptLoss: c.Bool("accept-loss")}
	err := portsGiven(c)
	if err != nil {
		return in, err
	}
	var kept installer.Input
	if err := conversationsInto(c, &kept); err != nil {
		return in, err
	}
	in.DiskCacheBytes, in.DiskCacheAuto = kept.DiskCacheBytes, kept.DiskCacheAuto
	if kept.NormalizeGiven {
		in.Normalize = &kept.Normalize
	}
	if err := callersInto(c, &kept); err != nil {
		return in, err
	}
	if kept.HostsGiven {
		in.AllowHosts = &kept.AllowHosts
	}
	if kept.OriginsGiven {
		in.AllowOrigins = &kept.AllowOrigins
	}
	in.IdleForS, err = idleForOf(c)
	return in, err
}

func upgradeVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "build the server again from its source; the old one stays until the new one answers",
		Flags: []cli.Flag{homeFlag(),
			sourceFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "allow writing in the home, building and launching without a question"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without consent end with exit code 5"},
			verboseFlag(), eventsFlag()},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Upgrade(s.ctx, operate.UpgradeInput{
				Yes: c.Bool("yes"), Source: c.String("source")})
			return s.setupAnswer(c, answer, err)
		},
	}
}

// attach shows the server's log until Ctrl-C, SIGTERM or SIGHUP, which stop the server, or until the server ends.
func (s *session) attach() error {
	s.say("Attached: Ctrl-C stops the server.")
	if err := s.op.Attach(s.ctx, s.follow(10)); err != nil {
		return err
	}
	return context.Cause(s.ctx)
}

func downVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "stop our server", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Down(s.ctx)
			return s.answer(answer, err, func(w io.Writer) {
				defer printRestored(w, answer.Neighbors)
				switch {
				case answer.StoppedBy != "":
					fmt.Fprintf(w, "The server was not running: the slipway of %s had stopped it, and does not start "+
						"it again now.\n", answer.StoppedBy)
				case !answer.WasRunning:
					fmt.Fprintln(w, "The server was not running.")
				case answer.Killed:
					fmt.Fprintf(w, "The server (pid %d) did not end in time and was killed; it is ours, and nothing "+
						"is lost.\n",
						answer.PID)
				default:
					fmt.Fprintf(w, "The server (pid %d) has stopped.\n", answer.PID)
				}
			})
		},
	}
}

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
			&cli.BoolFlag{Name: "attach", Usage: "stay, show the log, and stop the server at Ctrl-C"},
			eventsFlag()},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Up(s.ctx, operate.UpInput{Change: func(in *installer.Input) error {
				return changeInto(c, in)
			}})
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

// changeInto reads the flags of up into the request that is set up.
func changeInto(c *cli.Context, in *installer.Input) (err error) {
	in.AllowStop, in.AcceptLoss = plan.KindsOf(c.StringSlice("allow-stop")), c.Bool("accept-loss")
	if err := conversationsInto(c, in); err != nil {
		return err
	}
	if in.IdleForS, err = idleForOf(c); err != nil {
		return err
	}
	if c.IsSet("profile") {
		in.Profile = c.String("profile")
	}
	if c.IsSet("port") {
		in.Port = c.Int("port")
	}
	if c.IsSet("monitor-port") {
		if in.MonitorPort = c.Int("monitor-port"); in.MonitorPort == 0 {
			in.MonitorPort = -1 // refused: 0 would mean that none was given
		}
	}
	return nil
}

func upgradeVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "build the server from the source at hand; the old one stays until the new one answers",
		Flags: []cli.Flag{homeFlag(),
			sourceFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "allow writing in the home, building and launching without a question"},
			&cli.BoolFlag{Name: "no-input", Usage: "never ask; without consent end with exit code 5"},
			verboseFlag(), eventsFlag()},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Upgrade(s.ctx, operate.UpInput{Yes: c.Bool("yes"), Source: c.String("source")})
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

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/neighbor"
	"slipway/installer/operate"
)

// startEnvironment is the environment as it was at the start, before this program changed its own PATH: restore-exec
// passes it on.
var startEnvironment = os.Environ()

func restoreVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "start the servers again that slipway has stopped",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "dry-run", Usage: "say what would be started and " +
			"change nothing"},
			&cli.BoolFlag{Name: "changed-program", Usage: "start a server also where its program file is not the " +
				"one that was stopped"}},
		Action: func(c *cli.Context) error {
			answer, err := s.operator(c).Restore(s.ctx, operate.RestoreInput{DryRun: c.Bool("dry-run"),
				ChangedPrograms: c.Bool("changed-program")})
			return s.answer(answer, err, func(w io.Writer) {
				if len(answer.Neighbors) == 0 {
					fmt.Fprintln(w, "Nothing that slipway stopped waits to be started again.")
				}
				printRestored(w, answer.Neighbors)
			})
		},
	}
}

func printRestored(w io.Writer, list []neighbor.Outcome) {
	for _, v := range list {
		fmt.Fprintln(w, v.Sentence)
		if v.Log != "" {
			fmt.Fprintf(w, "  Its output: %s\n", v.Log)
		}
	}
}

// restoreExecVerb becomes a neighbour; only slipway itself calls it.
func restoreExecVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "restore-exec", Hidden: true, ArgsUsage: "ID",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "keep-environment"}, &cli.BoolFlag{Name: "changed-program"}},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("restore-exec needs one record")
			}
			var env []string
			if c.Bool("keep-environment") {
				env = startEnvironment
			}
			var report io.Writer = s.errOut
			if pipe := os.NewFile(3, "report"); pipe != nil {
				if _, err := pipe.Stat(); err == nil {
					report = pipe
				}
			}
			err := s.operator(c).RestoreExec(c.Args().First(), env, c.Bool("changed-program"), report)
			if report != s.errOut {
				return exitWith(exitInternal) // its starter was told why; standard error is the neighbour's log
			}
			return err
		},
	}
}

// watchRestoreVerb outlives its launcher and restores when the neighbour's place is free again.
func watchRestoreVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "watch-restore", Hidden: true, ArgsUsage: "ID", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return usage("watch-restore needs one record")
			}
			return s.operator(c).WatchRestore(s.ctx, c.Args().First(), os.Stdin, os.Stdout)
		},
	}
}

func allowStopFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-stop", Usage: "KIND of another model server (slipway neighbors) that " +
		"may be stopped while ours runs, once it is idle"}
}

func acceptLossFlag() cli.Flag {
	return &cli.BoolFlag{Name: "accept-loss", Usage: "with --allow-stop: stop it also where not everything about it " +
		"can be kept, such as the values of its variables"}
}

func idleForFlag() cli.Flag {
	return &cli.DurationFlag{Name: "idle-for", Usage: "with --allow-stop: how long it has to be seen idle, 15s to " +
		"1h; left out: 15s"}
}

// idleForOf reads --idle-for in whole seconds; 0: left out.
func idleForOf(c *cli.Context) (int, error) {
	if !c.IsSet("idle-for") {
		return 0, nil
	}
	span := c.Duration("idle-for")
	if span%time.Second != 0 {
		return 0, usage(fmt.Sprintf("--idle-for is %s, and must be whole seconds", span))
	}
	seconds := int(span / time.Second)
	return seconds, installer.CheckIdle(seconds)
}

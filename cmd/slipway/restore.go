package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"slipway/installer/launch"
	"slipway/installer/neighbor"
)

// startEnvironment is the environment as it was at the start, before this program changed its own PATH: restore-exec
// hands it on.
var startEnvironment = os.Environ()

// restoreAnswer is the data of restore.
type restoreAnswer struct {
	Neighbors []restoreView `json:"neighbors"`
}

// restoreView is one stopped neighbour and how its restore went.
type restoreView struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Title    string   `json:"title"`
	Port     int      `json:"port"`
	Models   []string `json:"models"`
	Result   string   `json:"result"` // restored, kept_running, held, waiting, port_taken, failed, would
	Sentence string   `json:"sentence"`
	Log      string   `json:"log"` // below the home; empty where its output goes elsewhere
}

func restoreViews(list []neighbor.Outcome) []restoreView {
	views := []restoreView{}
	for _, o := range list {
		v := restoreView{ID: o.ID, Kind: o.Server, Title: o.Title, Port: o.Port, Models: []string{}, Result: string(o.Result), Sentence: o.Sentence, Log: o.Log}
		for _, m := range o.Models {
			v.Models = append(v.Models, launch.Printable(m.ID))
		}
		views = append(views, v)
	}
	return views
}

func restoreVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "start the servers again that slipway has stopped",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "dry-run", Usage: "say what would be started and change nothing"}},
		Action: func(c *cli.Context) error {
			system, err := s.neighborhood(c.String("home"))
			if err != nil {
				return err
			}
			list, err := system.Restore(s.ctx, c.Bool("dry-run"))
			if err != nil {
				return err
			}
			answer := restoreAnswer{Neighbors: restoreViews(list)}
			return s.result(restoreCode(list, c.Bool("dry-run")), answer, func(w io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(w, "Nothing that slipway stopped waits to be started again.")
				}
				printRestored(w, answer.Neighbors)
			})
		},
	}
}

func printRestored(w io.Writer, list []restoreView) {
	for _, v := range list {
		fmt.Fprintln(w, v.Sentence)
		if v.Log != "" {
			fmt.Fprintf(w, "  Its output: %s\n", v.Log)
		}
	}
}

// restoreCode: a neighbour that could not come back is told by the exit code too.
func restoreCode(list []neighbor.Outcome, dryRun bool) int {
	code := exitOK
	for _, o := range list {
		switch o.Result {
		case neighbor.PortTaken, neighbor.Failed:
			return exitRefused
		case neighbor.Would:
			if dryRun {
				code = exitChanges
			}
		case neighbor.Waiting:
			code = exitTimeout
		}
	}
	return code
}

// restoreExecVerb becomes a neighbour; only slipway itself calls it.
func restoreExecVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "restore-exec", Hidden: true, ArgsUsage: "ID",
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "keep-environment"}},
		Action: func(c *cli.Context) error {
			system, err := s.neighborhood(c.String("home"))
			if err != nil {
				return err
			}
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
			return system.RestoreExec(c.Args().First(), env, report)
		},
	}
}

// watchRestoreVerb outlives its launcher and restores when nobody needs the neighbour's place any more.
func watchRestoreVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "watch-restore", Hidden: true, ArgsUsage: "ID", Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			system, err := s.neighborhood(c.String("home"))
			if err != nil {
				return err
			}
			if c.Args().Len() != 1 {
				return usage("watch-restore needs one record")
			}
			return system.WatchRestore(s.ctx, c.Args().First(), os.Stdin, os.Stdout)
		},
	}
}

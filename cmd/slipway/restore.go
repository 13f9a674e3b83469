package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
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
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "dry-run", Usage: "say what would be started and change nothing"},
			&cli.BoolFlag{Name: "changed-program", Usage: "start a server also where its program file is another one than the one that was stopped"}},
		Action: func(c *cli.Context) error {
			system, err := s.neighborhood(c.String("home"))
			if err != nil {
				return err
			}
			system.ChangedPrograms = c.Bool("changed-program")
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
		Flags: []cli.Flag{homeFlag(), &cli.BoolFlag{Name: "keep-environment"}, &cli.BoolFlag{Name: "changed-program"}},
		Action: func(c *cli.Context) error {
			system, err := s.neighborhood(c.String("home"))
			if err != nil {
				return err
			}
			if c.Args().Len() != 1 {
				return usage("restore-exec needs one record")
			}
			system.ChangedPrograms = c.Bool("changed-program")
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

func allowStopFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-stop", Usage: "KIND of another model server (slipway neighbors) that may be stopped while ours runs, once it is idle"}
}

func acceptLossFlag() cli.Flag {
	return &cli.BoolFlag{Name: "accept-loss", Usage: "with --allow-stop: stop it also where not everything about it can be kept, such as the values of its variables"}
}

func idleForFlag() cli.Flag {
	return &cli.DurationFlag{Name: "idle-for", Usage: "with --allow-stop: how long it has to be seen idle, 15s to 1h; left out: 15s"}
}

// idleForOf reads --idle-for in whole seconds; 0: left out.
func idleForOf(c *cli.Context) (int, error) {
	if !c.IsSet("idle-for") {
		return 0, nil
	}
	least := neighbor.DefaultTiming.Span
	if d := c.Duration("idle-for"); d < least || d > time.Hour || d%time.Second != 0 {
		return 0, usage(fmt.Sprintf("--idle-for is %s, and must be whole seconds from %s to 1h", d, least))
	}
	if c.Duration("idle-for") == least {
		return 0, nil // the same plan as without the flag
	}
	return int(c.Duration("idle-for") / time.Second), nil
}

// restoreLeftBehind starts what an earlier slipway has stopped and did not live to start again, unless this command
// names it to be stopped anyway. What cannot come back is said, and is no reason to stop here.
func (s *session) restoreLeftBehind(in installer.Input) {
	if in.AllowStop != "" {
		return
	}
	if home, err := s.openHome(in.Home); err != nil {
		return // no home, no records; what is wrong with it is said by what follows
	} else {
		home.Close()
	}
	system, err := s.neighborhood(in.Home)
	if err != nil {
		return
	}
	list, err := system.Restore(s.ctx, false)
	if err != nil {
		s.talk("What slipway stopped earlier could not be looked at: %v", err)
	}
	for _, o := range list {
		if o.Result != neighbor.Held {
			s.talk("%s", o.Sentence)
		}
	}
}

// restoreAfter starts the neighbours again once our server has ended. The watchers do the same; each starts once.
func (s *session) restoreAfter(home string) ([]neighbor.Outcome, error) {
	system, err := s.neighborhood(home)
	if err != nil {
		return nil, err
	}
	return system.Restore(s.ctx, false)
}

// restoreBeforeRemoval stops our server and starts the neighbours again while their records are still there.
func (s *session) restoreBeforeRemoval(home *apply.Home) error {
	system, err := s.neighborhood(home.Path)
	if err != nil {
		return err
	}
	pending, err := system.Pending()
	if err != nil || len(pending) == 0 {
		return err
	}
	lock, err := home.Lock("slipway uninstall")
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := launch.Stop(s.ctx, home.Root, home.Path); err != nil {
		return err
	}
	list, err := system.Restore(s.ctx, false)
	if err != nil {
		return err
	}
	for _, o := range list {
		s.talk("%s", o.Sentence)
	}
	if restoreCode(list, false) != exitOK {
		return &failure{code: exitRefused, what: "A server that slipway stopped could not be started again, and its record lies in the home.",
			then: "Nothing was removed. Start it by hand or free its port, run slipway restore, then uninstall again.", next: []string{"restore"}}
	}
	return nil
}

// otherThanNamed ends the sentence on what is stopped, and gives the lines that a person has to see before.
func otherThanNamed(p installer.Prepared) string {
	if len(p.Plan.Decisions.Stops) == 0 {
		return ""
	}
	if p.StopLines == "" {
		return " but what is named above"
	}
	return " but what is named above.\n  " + strings.TrimSuffix(p.StopLines, ".")
}

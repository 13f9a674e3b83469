package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"slipway/installer/launch"
	"slipway/installer/operate"
	"slipway/termtext"
)

func statusVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "how set-up, server and background jobs are", Flags: []cli.Flag{homeFlag(), watchFlag()},
		Action: func(c *cli.Context) error {
			if c.Bool("watch") && s.json {
				return usage("--watch and --json do not go together: a document has an end")
			}
			look := func() (operate.StatusAnswer, error) { return s.operator(c).Status(s.ctx) }
			s.openTold = true // among what it prints
			answer, err := look()
			if err == nil && !answer.NoHome && c.Bool("watch") {
				return s.watchStatus(look)
			}
			return s.answer(answer, err, func(w io.Writer) {
				if answer.NoHome {
					words("Nothing is set up in "+answer.Home+".", "Set it up: "+s.printed(c, "setup"))(w)
					return
				}
				printStatus(w, answer)
			})
		},
	}
}

func printStatus(w io.Writer, a operate.StatusAnswer) {
	defer printRestored(w, a.Stopped)
	if !a.SetUp {
		fmt.Fprintf(w, "Set-up in %s is not finished.\n", a.Home)
	} else {
		fmt.Fprintf(w, "Set up in %s: model %s, profile %s.\n", a.Home, a.Model, a.Profile)
	}
	if a.SetUp && a.Draft != "" && a.Draft != "none" {
		fmt.Fprintf(w, "Its draft: %s.\n", a.Draft)
	}
	for _, sentence := range a.Callers.Sentences {
		fmt.Fprintln(w, sentence)
	}
	if a.Toy {
		fmt.Fprintln(w, toyWords)
	}
	printFirstAnswer(w, a.Answer)
	fmt.Fprintln(w, serverSentence(a.Server))
	if by := a.Server.StoppedBy; by != nil {
		fmt.Fprintf(w, "%s To have it back now, run:\n  %s\n", by.Sentence, shellWords(by.Back))
	}
	if a.Server.Monitor != "" && a.Server.State == launch.Running {
		fmt.Fprintln(w, "Its monitor: "+a.Server.Monitor)
	}
	if a.Live != nil {
		printLive(w, a.Live, recentShown)
	}
	for _, damage := range a.Damage {
		fmt.Fprintln(w, damage)
	}
	if len(a.Continue) > 0 {
		fmt.Fprintf(w, "%s\n  %s\n", interruptedWords, shellWords(a.Continue))
	}
	if a.Worker != nil {
		fmt.Fprintf(w, "Working on this home now: %s (pid %d).\n", termtext.Line(a.Worker.Command), a.Worker.PID)
	}
	if a.Job != nil {
		fmt.Fprintf(w, "Newest background job %s: %s.\n", a.Job.Job, a.Job.State)
	}
}

// shortDigest is enough of a digest to tell plans apart.
func shortDigest(digest string) string { return digest[:min(len(digest), 19)] }

func serverSentence(s operate.ServerStatus) string {
	switch s.State {
	case launch.Running:
		return fmt.Sprintf("The server answers at %s (pid %d, since %s; %d active, %d queued).", s.API, s.PID,
			s.Started,
			s.Health.Active, s.Health.Queued)
	case launch.Starting:
		return fmt.Sprintf("The server is starting (pid %d).", s.PID)
	case launch.Hung:
		return fmt.Sprintf("The server (pid %d) runs and does not answer; slipway down stops it, slipway up "+
			"starts it again.", s.PID)
	case launch.Crashed:
		return "The server ended by itself; slipway logs shows the end of its log."
	}
	return "The server is stopped."
}

// printFirstAnswer repeats what the model said when it was set up.
func printFirstAnswer(w io.Writer, a *operate.FirstAnswer) {
	if a != nil {
		fmt.Fprintf(w, "Asked %q when it was set up, it said: %s\n", a.Question, quoted(a.Answer))
		if a.Speed != nil {
			fmt.Fprintln(w, measuredWords(*a.Speed))
		}
	}
}

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/neighbor"
	"slipway/installer/process"
)

// neighborsAnswer is the data of neighbors. Nothing was changed, and no program of a neighbour was run.
type neighborsAnswer struct {
	Neighbors []neighborView `json:"neighbors"`
	Stopped   []restoreView  `json:"stopped"` // by slipway, and not back yet
}

// neighborView is a server as it is shown: never its arguments or its environment.
type neighborView struct {
	Kind           string   `json:"kind"`
	Title          string   `json:"title"`
	Address        string   `json:"address"`
	Port           int      `json:"port"`
	PID            int      `json:"pid"` // 0 where the system hides it
	UID            int      `json:"uid"`
	Program        string   `json:"program"`
	Arguments      int      `json:"arguments"` // how many
	Started        string   `json:"started"`   // RFC 3339, or empty
	StartedBy      string   `json:"started_by"`
	StarterName    string   `json:"starter_name"`
	Models         []string `json:"models"`
	FootprintBytes int64    `json:"footprint_bytes"`
	Protected      bool     `json:"protected"`
	State          string   `json:"state"` // idle, busy or unknown
	Reasons        []string `json:"reasons"`
	Clients        []string `json:"clients"`
	Wedged         bool     `json:"wedged"`
	Channel        string   `json:"channel"` // how slipway would stop it; empty: it would not
	Refusal        string   `json:"refusal"` // why not
	Losses         []string `json:"losses"`  // what cannot be kept for its return: stopped only with --accept-loss
	Missing        []string `json:"missing"` // what would differ without harm
	Line           string   `json:"line"`
}

// neighborhood is the neighbours' side of a home, which need not be there yet.
func (s *session) neighborhood(home string) (*neighbor.System, error) {
	resolved, err := apply.ResolveHome(home, s.place.UserHome)
	if err != nil {
		return nil, err
	}
	system, err := neighbor.New(resolved, []string{s.place.Executable})
	if err != nil {
		return nil, err
	}
	system.Say = func(text string) { s.talk("%s", text) }
	return system, nil
}

func neighborsVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "neighbors", Aliases: []string{"neighbours"}, Usage: "show other model servers on this machine, and whether they work; change nothing",
		Flags: []cli.Flag{homeFlag()},
		Action: func(c *cli.Context) error {
			system, err := s.neighborhood(c.String("home"))
			if err != nil {
				return err
			}
			var own []process.Identity
			if home, err := s.openHome(c.String("home")); err == nil {
				if status, err := launch.Look(s.ctx, home.Root, home.Path); err == nil {
					own = append(own, status.Record.Process)
				}
				home.Close()
			}
			servers, err := system.Find(s.ctx, own...)
			if err != nil {
				return err
			}
			var all sync.WaitGroup
			for i := range servers {
				all.Go(func() { servers[i].Idle = system.ProveIdle(s.ctx, servers[i], neighbor.LookTiming(system.Timing)) })
			}
			all.Wait()
			pending, err := system.Pending()
			if err != nil {
				return err
			}
			answer := neighborsAnswer{Neighbors: []neighborView{}, Stopped: restoreViews(pending)}
			for _, server := range servers {
				answer.Neighbors = append(answer.Neighbors, viewOf(server))
			}
			return s.result(exitOK, answer, func(w io.Writer) { printNeighbors(w, answer) })
		},
	}
}

func viewOf(server neighbor.Server) neighborView {
	v := neighborView{
		Kind: server.Kind, Title: server.Title, Address: server.Address.String(), Port: server.Port, PID: server.PID, UID: server.UID,
		Program: launch.Printable(server.Exe), Arguments: server.Arguments, StartedBy: server.Starter.Type, StarterName: launch.Printable(server.Starter.Name),
		Models: []string{}, FootprintBytes: server.FootprintBytes, Protected: server.Protected, State: string(server.Idle.State),
		Reasons: orEmpty(server.Idle.Reasons), Clients: orEmpty(server.Idle.Clients), Wedged: server.Idle.Wedged,
		Channel: string(server.Channel), Refusal: server.Refusal, Losses: orEmpty(server.Losses), Missing: orEmpty(server.Missing),
	}
	if !server.Started.IsZero() {
		v.Started = server.Started.UTC().Format(time.RFC3339)
	}
	contender := server.Contender(time.Now())
	v.Models = orEmpty(contender.Models)
	about := server.Idle.Sentence()
	if server.Refusal != "" {
		about += "; slipway does not stop it: " + server.Refusal
		if server.Kind == "unknown" || server.Idle.Reasons != nil && server.Idle.Reasons[0] == server.Refusal {
			about = server.Refusal
		}
	}
	v.Line = fmt.Sprintf("%s: %s", server.Name(), about)
	return v
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func printNeighbors(w io.Writer, a neighborsAnswer) {
	if len(a.Neighbors) == 0 {
		fmt.Fprintln(w, "No other model server is listening on the ports that slipway knows.")
	}
	for _, n := range a.Neighbors {
		fmt.Fprintln(w, n.Line+".")
		if n.Program != "" {
			fmt.Fprintf(w, "  Program: %q with %d arguments\n", filepath.Clean(n.Program), n.Arguments)
		}
		for _, model := range n.Models {
			fmt.Fprintf(w, "  Model:   %q\n", model)
		}
		if n.StarterName != "" {
			fmt.Fprintf(w, "  Started by %s %q\n", n.StartedBy, n.StarterName)
		}
		for _, loss := range n.Losses {
			fmt.Fprintf(w, "  Might be lost: %s\n", loss)
		}
	}
	for _, r := range a.Stopped {
		fmt.Fprintln(w, r.Sentence)
	}
}

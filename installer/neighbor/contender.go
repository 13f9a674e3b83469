package neighbor

import (
	"time"

	"slipway/installer/neighbor/contention"
)

// Contender is the server as the plan sees it. now is the clock: a start of another day is shown with its date.
func (s Server) Contender(now time.Time) contention.Neighbor {
	n := contention.Neighbor{
		Kind: s.Kind, Title: s.Title, Port: s.Port, PID: s.PID, StartUS: s.identity.StartUS, BootID: s.identity.BootID, Exe: s.Exe,
		Channel: string(s.Channel), State: string(s.Idle.State), StateSentence: s.Idle.Sentence(), IdleSeconds: s.Idle.IdleSeconds,
		FootprintBytes: s.FootprintBytes, Refusal: s.Refusal, Losses: s.Losses, Missing: s.Missing,
	}
	for _, m := range s.Models {
		n.Models = append(n.Models, plain(m.ID))
	}
	if !s.Started.IsZero() {
		n.Started = s.Started.Local().Format("15:04")
		if now.Sub(s.Started) > 24*time.Hour {
			n.Started = s.Started.Local().Format("2006-01-02 15:04")
		}
	}
	return n
}

// StopLine is the human line for a server and the evidence at hand.
func StopLine(server Server, idle Idle) string {
	server.Idle = idle
	return contention.StopLine(server.Contender(time.Now()))
}

// Is tells whether the server is the one that a plan named: an action of a plan is carried out on this very process or
// on none.
func (s Server) Is(n contention.Neighbor) bool {
	return s.Kind == n.Kind && s.Port == n.Port && s.PID == n.PID && s.identity.StartUS == n.StartUS && s.identity.BootID == n.BootID && s.Exe == n.Exe
}

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StoppedServer is another server that a plan stops and that is started again when our server ends. It is
// named by its identity: the action stops this process or none. What was observed of it (how long it has
// been idle) is not part of the decision.
type StoppedServer struct {
	Kind    string   `json:"kind"`
	Title   string   `json:"title"`
	Port    int      `json:"port"`            // at which it answers
	Ports   []int    `json:"ports,omitempty"` // all that it has, where it has more; not in the digest
	PID     int      `json:"pid"`
	StartUS int64    `json:"start_us"` // see installer/process
	BootID  string   `json:"boot_id"`
	Exe     string   `json:"exe"`
	Channel string   `json:"channel"` // how it is stopped and started again: argv, launchd, brew, systemd, app, unload
	Models  []string `json:"models"`
}

// StopsHolderOf reports whether the plan stops the process that holds a port.
func (d Decisions) StopsHolderOf(port, pid int) bool {
	for _, s := range d.Stops {
		if (s.Port == port || slices.Contains(s.Ports, port)) && s.Channel != "unload" && (pid == 0 || s.PID == pid) {
			return true
		}
	}
	return false
}

func stopsAction(d Decisions) Action {
	a := Action{
		ID: "neighbors", Kind: StopsAction, Consent: []Class{Stop},
		Touches:      Touches{Paths: []string{"state/neighbors"}, Ports: []int{}, Processes: []string{}},
		Precondition: "each is the process named here, and idle over several samples until the signal",
		Undo:         "start them again: slipway down, slipway restore, or by itself when our server ends",
	}
	var sentences []string
	for _, s := range d.Stops {
		name := fmt.Sprintf("%s (pid %d, port %d)", s.Title, s.PID, s.Port)
		a.Touches.Processes = append(a.Touches.Processes, name)
		models := quoted(s.Models)
		if s.Channel == "unload" {
			sentences = append(sentences, fmt.Sprintf("Ask %s to unload %s, and load it again when slipway stops.",
				name,
				models))
			continue
		}
		with := ""
		if models != "" {
			with = " with " + models
		}
		sentences = append(sentences, fmt.Sprintf("Stop %s%s, and start it again when slipway stops.", name, with))
	}
	if d.RebootAgent != "" {
		sentences = append(sentences, fmt.Sprintf("Outside the home, %s is written until then: it restores once "+
			"after a reboot.", d.RebootAgent))
	}
	a.Sentence = strings.Join(sentences, " ")
	return a
}

// quoted writes names so that none reads as a part of the sentence around them.
func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return strings.Join(all, ", ")
}

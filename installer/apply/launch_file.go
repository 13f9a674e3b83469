package apply

import (
	"fmt"
	"strings"

	"slipway/installer/launch"
	records "slipway/installer/neighbor/record"
	"slipway/installer/plan"
	"slipway/termtext"
	"slipway/wire"
)

// writeLaunch writes for the monitor what was decided and which servers were stopped.
func writeLaunch(home *Home, d plan.Decisions) error {
	left := wire.Launch{Profile: d.Profile.Name, BudgetBytes: d.Profile.BudgetBytes, Limit: d.Profile.Sentence,
		Neighbors: []wire.Neighbor{}}
	stopped, _ := records.Folder{Home: home.Path}.List()
	for _, r := range stopped {
		n := wire.Neighbor{Title: termtext.Line(r.Title), Port: r.Port, Models: []string{}}
		for _, m := range r.Models {
			n.Models = append(n.Models, termtext.Line(m.ID))
		}
		name := n.Title
		if len(n.Models) > 0 {
			name += " with " + n.Models[0]
		}
		n.Sentence = fmt.Sprintf("%s on port %d is stopped while this server runs, and comes back when it ends.", name,
			n.Port)
		if r.Channel == records.ChannelUnload {
			n.Sentence = fmt.Sprintf("%s of %s on port %d: unloaded while this server runs, and loaded again "+
				"when it ends.",
				strings.Join(n.Models, ", "), n.Title, n.Port)
		}
		left.Neighbors = append(left.Neighbors, n)
	}
	return launch.WriteLaunch(home.Root, left)
}

package apply

import (
	"fmt"

	"slipway/installer/launch"
	records "slipway/installer/neighbor/record"
	"slipway/installer/plan"
)

// tell writes down for the monitor what was decided and who was stopped.
func tell(home *Home, d plan.Decisions) error {
	told := launch.Told{Profile: d.Profile.Name, BudgetBytes: d.Profile.BudgetBytes, Limit: d.Profile.Sentence, Neighbors: []launch.ToldNeighbor{}}
	stopped, _ := records.Folder{Home: home.Path}.List()
	for _, r := range stopped {
		n := launch.ToldNeighbor{Title: launch.Printable(r.Title), Port: r.Port, Models: []string{}}
		for _, m := range r.Models {
			n.Models = append(n.Models, launch.Printable(m.ID))
		}
		name := n.Title
		if len(n.Models) > 0 {
			name += " with " + n.Models[0]
		}
		n.Sentence = fmt.Sprintf("%s on port %d is stopped while this server runs, and comes back when it ends.", name, n.Port)
		told.Neighbors = append(told.Neighbors, n)
	}
	return launch.Tell(home.Root, told)
}

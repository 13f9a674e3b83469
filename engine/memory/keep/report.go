package keep

import "slipway/engine/memory"

// Report says what a prompt cost and why. The texts are the user's: they are for the loopback monitor, never for a log.
type Report struct {
	memory.Explanation
	Prompt int

	Change   *memory.Change // where the prompt parts from what was known
	Volatile bool           // the text there changes with every request
}

// mostReports is how many requests are remembered for the monitor.
const mostReports = 64

// report looks at why a prompt missed, and names text that changes with every request.
func (k *Keeper) report(prompt []int32, e memory.Explanation) Report {
	r := Report{Explanation: e, Prompt: len(prompt)}
	if p := r.Difference; p != nil {
		change := memory.ChangeAt(k.opt.Decode(p.Before), k.opt.Decode(p.Old), k.opt.Decode(p.New))
		r.Change, r.Volatile = &change, k.volatile.Observe(change)
		if r.Volatile && r.Again > 0 {
			k.opt.Log.Warn("part of the prompt changes with every request", "at_token", p.At, "what", shapeOf(change),
				"advice", change.Advice())
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recent = append(k.recent, r)
	k.recent = k.recent[max(0, len(k.recent)-mostReports):]
	return r
}

func shapeOf(c memory.Change) string {
	if s := c.Shape(); s != "" {
		return s
	}
	return "text"
}

// Reports gives the latest prompts, oldest first. Safe from any goroutine.
func (k *Keeper) Reports() []Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]Report(nil), k.recent...)
}

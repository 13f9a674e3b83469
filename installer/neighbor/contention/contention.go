// Package contention answers why a neighbour would be stopped at all: which resource both want, what else would do
// instead, and the sentence that a person reads before allowing it. Values in, values out: no clock, disk or network.
package contention

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Neighbor is what the plan knows of another server. PID, StartUS, BootID and Exe identify it and belong in a plan's
// digest; State, IdleSeconds and FootprintBytes are observations and do not.
type Neighbor struct {
	Kind    string `json:"kind"`
	Title   string `json:"title"`
	Port    int    `json:"port"`
	PID     int    `json:"pid"`
	StartUS int64  `json:"start_us"`
	BootID  string `json:"boot_id"`
	Exe     string `json:"exe"`
	Channel string `json:"channel"` // empty: slipway would not stop it
	// Models are ids, already made fit to print.
	Models         []string `json:"models"`
	Started        string   `json:"started"` // clock time for people, such as "10:02"
	State          string   `json:"state"`   // idle, busy or unknown
	StateSentence  string   `json:"state_sentence"`
	IdleSeconds    *float64 `json:"idle_seconds"`
	FootprintBytes int64    `json:"footprint_bytes"` // 0: not known
	Refusal        string   `json:"refusal"`
	Losses         []string `json:"losses"` // what cannot be kept for its return
	Missing        []string `json:"missing"`
}

// Need is what the plan wants. Bytes of 0 mean that memory was not weighed.
type Need struct {
	Port           int      // of the API
	MonitorPort    int      // 0: none
	OtherPort      int      // a port that is free; 0: none known
	NeedsBytes     int64    // by the sizing rule, with every window full
	AvailableBytes int64    // what the machine can give beside everything that runs now; below 0: they hold more than there is
	Smaller        *Smaller // nil: nothing smaller fits into AvailableBytes
}

// Smaller is another choice, which fits beside everything that runs.
type Smaller struct {
	Model, Profile string
	Memory         string // the budget, as a flag's value
	WindowTokens   int
	NeedsBytes     int64
}

// Resource is what both want.
type Resource string

const (
	ResourcePort   Resource = "port"
	ResourceMemory Resource = "memory"
)

// Way is one way out, with the flags that choose it. Ways are listed gentlest first.
type Way struct {
	ID       string   `json:"id"` // other_port, smaller_profile, unload, stop, by_hand
	Sentence string   `json:"sentence"`
	Flags    []string `json:"flags"`
}

// Conflict is one neighbour in the way.
type Conflict struct {
	Neighbor  Neighbor   `json:"neighbor"`
	Resources []Resource `json:"resources"`
	Why       string     `json:"why"`
	Ways      []Way      `json:"ways"`
	// StopLine is the sentence that a person has to see before the stop is allowed; empty where slipway would not stop it.
	StopLine string `json:"stop_line"`
}

// Weigh finds the neighbours that are in the way. For memory it takes as few as it needs: idle ones that slipway may
// stop first, the largest first. A neighbour of which the size is not known cannot help there.
func Weigh(neighbors []Neighbor, need Need) []Conflict {
	var conflicts []Conflict
	lacking := need.NeedsBytes - need.AvailableBytes
	for _, n := range neighbors {
		// A server whose models can only be unloaded keeps its port.
		if n.Port == need.Port || need.MonitorPort > 0 && n.Port == need.MonitorPort {
			conflicts = append(conflicts, Conflict{Neighbor: n, Resources: []Resource{ResourcePort}})
			if n.Channel != "unload" {
				lacking -= n.FootprintBytes
			}
		}
	}
	if need.NeedsBytes > 0 && lacking > 0 {
		for _, n := range bySize(neighbors) {
			if lacking <= 0 {
				break
			}
			at := slices.IndexFunc(conflicts, func(c Conflict) bool { return c.Neighbor.PID == n.PID && c.Neighbor.Port == n.Port })
			switch {
			case n.FootprintBytes == 0 || n.Channel == "" || at >= 0 && n.Channel != "unload":
				continue
			case at >= 0:
				conflicts[at].Resources = append(conflicts[at].Resources, ResourceMemory)
			default:
				conflicts = append(conflicts, Conflict{Neighbor: n, Resources: []Resource{ResourceMemory}})
			}
			lacking -= n.FootprintBytes
		}
	}
	for i := range conflicts {
		explain(&conflicts[i], need)
	}
	return conflicts
}

func bySize(neighbors []Neighbor) []Neighbor {
	sorted := slices.Clone(neighbors)
	slices.SortStableFunc(sorted, func(a, b Neighbor) int {
		if aIdle, bIdle := a.State == "idle", b.State == "idle"; aIdle != bIdle {
			if aIdle {
				return -1
			}
			return 1
		}
		return int(min(max(b.FootprintBytes-a.FootprintBytes, -1), 1))
	})
	return sorted
}

func explain(c *Conflict, need Need) {
	n := c.Neighbor
	var why []string
	byPort := slices.Contains(c.Resources, ResourcePort)
	if byPort {
		why = append(why, fmt.Sprintf("%s has port %d", n.Title, n.Port))
	}
	if slices.Contains(c.Resources, ResourceMemory) {
		why = append(why, fmt.Sprintf("%s holds %s of the memory, and the plan needs %s where %s are available",
			n.Title, gib(n.FootprintBytes), gib(need.NeedsBytes), gib(max(need.AvailableBytes, 0))))
	}
	c.Why = strings.Join(why, "; ")
	if byPort && need.OtherPort > 0 {
		flag := "--port"
		if n.Port != need.Port {
			flag = "--monitor-port"
		}
		c.Ways = append(c.Ways, Way{ID: "other_port", Sentence: fmt.Sprintf("Leave it alone and use port %d.", need.OtherPort), Flags: []string{flag, fmt.Sprint(need.OtherPort)}})
	}
	if s := need.Smaller; !byPort && s != nil {
		c.Ways = append(c.Ways, Way{ID: "smaller_profile", Flags: []string{"--model", s.Model, "--profile", s.Profile, "--memory", s.Memory},
			Sentence: fmt.Sprintf("Leave it alone and take %s with profile %s and a window of %d tokens, which needs %s and fits beside it.",
				s.Model, s.Profile, s.WindowTokens, gib(s.NeedsBytes))})
	}
	allow := []string{"--allow-stop", n.Kind}
	switch {
	case n.Channel == "" || n.Refusal != "":
		c.Ways = append(c.Ways, Way{ID: "by_hand", Sentence: fmt.Sprintf("slipway does not stop it: %s.", n.Refusal)})
		return
	case byPort && n.Channel == "unload":
		c.Ways = append(c.Ways, Way{ID: "by_hand", Sentence: fmt.Sprintf("slipway only unloads models of %s, which does not free its port: quit it yourself.", n.Title)})
		return
	case n.State != "idle":
		c.Ways = append(c.Ways, Way{ID: "by_hand", Sentence: fmt.Sprintf("Wait until it is idle: it is %s.", n.StateSentence), Flags: nil})
	}
	c.StopLine = StopLine(n)
	id := "stop"
	if n.Channel == "unload" {
		id = "unload"
	}
	c.Ways = append(c.Ways, Way{ID: id, Sentence: c.StopLine, Flags: allow})
}

// StopLine is the human line: who exactly, since when, how idle, with which model, and that it comes back.
func StopLine(n Neighbor) string {
	about := []string{fmt.Sprintf("pid %d", n.PID)}
	if n.Started != "" {
		about = append(about, "started "+n.Started)
	}
	switch {
	case n.IdleSeconds != nil && n.State == "idle":
		about = append(about, fmt.Sprintf("idle %.0f s", *n.IdleSeconds))
	case n.State != "":
		about = append(about, n.State)
	}
	models := Quoted(n.Models)
	if n.Channel == "unload" {
		return fmt.Sprintf("Will ask %s (%s) to unload %s and load it again when slipway stops.", n.Title, strings.Join(about, ", "), models)
	}
	if models != "" {
		about = append(about, "model "+models)
	}
	return fmt.Sprintf("Will stop %s (%s) and start it again when slipway stops.", n.Title, strings.Join(about, ", "))
}

// Quoted writes foreign names so that none can be taken for a part of the sentence around them.
func Quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return strings.Join(all, ", ")
}

// Choose splits conflicts by what was allowed (kinds by --allow-stop, or all by a plan's digest): those to stop, and the
// kinds that nobody has allowed. Conflicts that slipway would not stop are in neither; they are blockers.
func Choose(conflicts []Conflict, allowed []string, byDigest bool) (stop []Conflict, notAllowed []string) {
	for _, c := range conflicts {
		switch {
		case c.StopLine == "":
		case byDigest || slices.Contains(allowed, c.Neighbor.Kind):
			stop = append(stop, c)
		case !slices.Contains(notAllowed, c.Neighbor.Kind):
			notAllowed = append(notAllowed, c.Neighbor.Kind)
		}
	}
	return stop, notAllowed
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

package neighbor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/units"
)

// Need is what a plan wants of the machine. Bytes of 0 mean that memory is not compared.
type Need struct {
	Port           int      // of the API
	MonitorPort    int      // 0: none
	OtherPort      int      // a port that is free; 0: none known
	NeedsBytes     int64    // by the sizing rule, with every window full
	AvailableBytes int64    // what the machine can give while all others run; below 0: they hold more than there is
	Smaller        *Smaller // nil: nothing smaller fits into AvailableBytes
}

// Smaller is another choice, which fits while all others run.
type Smaller struct {
	Model, Profile string
	Memory         string // the budget, as a flag's value
	WindowTokens   int
	NeedsBytes     int64
}

// Conflict is a server that has what the plan needs.
type Conflict struct {
	Server       Server
	Port, Memory bool // what both want
	Why          string
	// Gentle are the ways that leave the server alone, as sentences that begin with "leave", with their flags.
	Gentle []string
}

// Conflicts finds the servers that have what the plan needs. For memory it takes as few as possible: idle ones that
// slipway may stop first, the largest first. A server whose size is not known cannot help there.
func Conflicts(servers []Server, need Need) []Conflict {
	var conflicts []Conflict
	lacking := need.NeedsBytes - need.AvailableBytes
	for _, s := range servers {
		if s.Listens(need.Port) || need.MonitorPort > 0 && s.Listens(need.MonitorPort) {
			conflicts = append(conflicts, Conflict{Server: s, Port: true})
			if s.Channel != record.ChannelUnload { // which leaves the server, and its port, where it is
				lacking -= s.FootprintBytes
			}
		}
	}
	if need.NeedsBytes > 0 {
		for _, s := range bySize(servers) {
			if lacking <= 0 {
				break
			}
			at := slices.IndexFunc(conflicts, func(c Conflict) bool {
				return c.Server.PID == s.PID &&
					c.Server.Port == s.Port
			})
			switch {
			case s.FootprintBytes == 0 || s.Channel == "" || at >= 0 && s.Channel != record.ChannelUnload:
				continue
			case at >= 0:
				conflicts[at].Memory = true
			default:
				conflicts = append(conflicts, Conflict{Server: s, Memory: true})
			}
			lacking -= s.FootprintBytes
		}
	}
	for i := range conflicts {
		conflicts[i].explain(need)
	}
	return conflicts
}

// bySize sorts idle servers first, then by size, the largest first.
func bySize(servers []Server) []Server {
	return slices.SortedStableFunc(slices.Values(servers), func(a, b Server) int {
		if aIdle, bIdle := a.State == StateIdle, b.State == StateIdle; aIdle != bIdle {
			if aIdle {
				return -1
			}
			return 1
		}
		return int(min(max(b.FootprintBytes-a.FootprintBytes, -1), 1))
	})
}

func (c *Conflict) explain(need Need) {
	s := c.Server
	var why []string
	if c.Port {
		port, flag := need.Port, "--port"
		if !s.Listens(port) {
			port, flag = need.MonitorPort, "--monitor-port"
		}
		why = append(why, fmt.Sprintf("%s has port %d", s.Title, port))
		if need.OtherPort > 0 {
			c.Gentle = append(c.Gentle, fmt.Sprintf("leave it alone and use port %d (%s %d).", need.OtherPort, flag,
				need.OtherPort))
		}
	}
	if c.Memory {
		why = append(why, fmt.Sprintf("%s holds %s of memory; the plan needs %s, and %s are available",
			s.Title, units.Binary(s.FootprintBytes), units.Binary(need.NeedsBytes),
			units.Binary(max(need.AvailableBytes, 0))))
	}
	if small := need.Smaller; !c.Port && small != nil {
		c.Gentle = append(c.Gentle, fmt.Sprintf("leave it alone and take %s with a context of %s tokens "+
			"(--model %s --profile %s --memory %s).", small.Model, units.Count(small.WindowTokens), small.Model,
			small.Profile, small.Memory))
	}
	c.Why = strings.Join(why, "; ") + "."
}

// Ways says why a server is in the way and what can be done, gentlest first, in complete sentences. It is empty for a
// program that slipway does not know: nothing can be said beyond what is always said of a port.
func (c Conflict) Ways() string {
	s := c.Server
	if s.Kind == "unknown" {
		return ""
	}
	words := []string{c.Why}
	for _, way := range c.Gentle {
		words = append(words, "L"+way[1:])
	}
	if c.Port && len(c.Gentle) == 0 {
		words = append(words, "Choose another port with --port.")
	}
	switch {
	case s.Channel == "" || s.Refusal != "":
		words = append(words, fmt.Sprintf("slipway does not stop it: %s.", s.Refusal))
	case c.Port && s.Channel == record.ChannelUnload:
		words = append(words, "slipway only unloads its models, which does not free its port: quit it yourself to "+
			"use this one.")
	case s.Channel == record.ChannelUnload:
		words = append(words, fmt.Sprintf("With --allow-stop %s slipway unloads its models once it is idle, "+
			"and loads them again when ours stops.", s.Kind))
	default:
		words = append(words, fmt.Sprintf("With --allow-stop %s it is stopped when idle, and "+
			"started again later.", s.Kind))
	}
	return strings.Join(words, " ")
}

// StopLine is what a person has to read before the stop is allowed: which server, since when, how idle, with which
// model, and that it is started again. now is the clock: a start of another day is shown with its date.
func (s Server) StopLine(now time.Time) string {
	about := []string{fmt.Sprintf("pid %d", s.PID)}
	if started, err := time.Parse(time.RFC3339, s.Started); err == nil {
		layout := "15:04"
		if now.Sub(started) > 24*time.Hour {
			layout = "2006-01-02 15:04"
		}
		about = append(about, "started "+started.Local().Format(layout))
	}
	switch {
	case s.IdleSeconds != nil && s.State == StateIdle:
		about = append(about, fmt.Sprintf("idle %.0f s", *s.IdleSeconds))
	case s.State != "":
		about = append(about, string(s.State))
	}
	var models []string
	for _, id := range s.Models { // quoted, so that none reads as a part of the sentence
		models = append(models, strconv.Quote(id))
	}
	names := strings.Join(models, ", ")
	if s.Channel == record.ChannelUnload {
		return fmt.Sprintf("Will ask %s (%s) to unload %s and load it again when slipway stops.",
			s.Title, strings.Join(about, ", "), names)
	}
	if names != "" {
		about = append(about, "model "+names)
	}
	return fmt.Sprintf("Will stop %s (%s) and start it again when slipway stops.", s.Title, strings.Join(about, ", "))
}

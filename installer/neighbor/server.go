package neighbor

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// State is what is known of a server's work. Only StateIdle lets anything be stopped.
type State string

const (
	StateIdle    State = "idle"
	StateBusy    State = "busy"
	StateUnknown State = "unknown" // cannot be proven; treated as busy
)

// Idle is a state with its evidence.
type Idle struct {
	State   State    `json:"state"`
	Reasons []string `json:"reasons"` // why it is not idle; empty when it is
	// Clients are other programs with a connection to the port, in any state.
	Clients []string `json:"clients"`
	// Wedged: it says that it works, yet counters and CPU time did not move over all samples.
	Wedged  bool    `json:"wedged"`
	Samples int     `json:"-"`
	SpanS   float64 `json:"-"`
	// IdleSeconds is what the server says itself; nil where it does not.
	IdleSeconds *float64 `json:"-"`
	last        sample   // the next sample is compared with it
}

// Sentence says it in words.
func (i Idle) Sentence() string {
	switch {
	case i.State == StateIdle:
		return "idle"
	case i.Wedged:
		return fmt.Sprintf("looks stuck: it reports work (%s), but nothing changed for %.0f s; slipway does not "+
			"stop it", strings.Join(i.Reasons, "; "), i.SpanS)
	case i.State == StateBusy:
		return "busy: " + strings.Join(i.Reasons, "; ")
	default:
		return "cannot be proven idle: " + strings.Join(i.Reasons, "; ")
	}
}

// Starter is who started the process and may start it again.
type Starter struct {
	Type   string `json:"started_by"`   // user, launchd, brew, systemd, app, supervisor
	Name   string `json:"starter_name"` // label, unit, bundle or program; empty for user
	PID    int    `json:"-"`
	Plist  string `json:"-"`
	system bool   // a unit or daemon of the machine, which only root may stop
	shared bool   // a unit that is more than this server, such as a terminal
}

// Server is another model server, from the search to the answer of `slipway neighbors`. What is exported may be shown.
// It never holds arguments or environment in exported fields: these may carry keys.
type Server struct {
	Kind      string `json:"kind"` // "unknown" where program and answers do not agree on one that is known
	Title     string `json:"title"`
	Address   string `json:"address"` // as bound
	Port      int    `json:"port"`    // at which it answers
	Ports     []int  `json:"ports"`   // all on which it or a child of it listens, in rising order
	PID       int    `json:"pid"`     // 0 where the system hides it
	UID       int    `json:"uid"`
	Home      string `json:"home"` // of a slipway-server that its own slipway started; empty otherwise
	Exe       string `json:"program"`
	Arguments int    `json:"arguments"` // how many; their text is not shown
	Started   string `json:"started"`   // RFC 3339, or empty
	Starter
	Models []string `json:"models"` // ids, fit to print
	// FootprintBytes is the memory that its end and that of its children would free; 0 where not known.
	FootprintBytes int64 `json:"footprint_bytes"`
	Protected      bool  `json:"protected"` // it wants a key
	Idle
	// Channel is how it would be stopped and started again; empty where slipway would not, and Refusal says why.
	Channel record.Channel `json:"channel"`
	Refusal string         `json:"refusal"`
	// Losses are what cannot be kept for its return: it is stopped only where a person accepts them. Missing would
	// differ too, without harm.
	Losses  []string `json:"losses"`
	Missing []string `json:"missing"`
	Line    string   `json:"line"` // all of it in one sentence; set by Look

	identity process.Identity
	details  process.Details
	loaded   []record.Model // Models, with how each was loaded
	kind     *kind
	probe    netip.Addr // loopback address to ask
}

// Identity is the process behind the listener, the zero value where hidden.
func (s Server) Identity() process.Identity { return s.identity }

// Listens reports whether the server has the port.
func (s Server) Listens(port int) bool { return s.Port == port || slices.Contains(s.Ports, port) }

// Named reports whether name is the server's kind, by id or title, or one of its ports, or its pid.
func (s Server) Named(name string) bool {
	if id, ok := KindNamed(name); ok || name == s.Kind {
		return id == s.Kind || name == s.Kind
	}
	n, err := strconv.Atoi(name)
	return err == nil && n > 0 && (s.PID == n || s.Listens(n))
}

// Stoppable reports whether slipway would stop it, once idle and allowed.
func (s Server) Stoppable() bool { return s.Channel != "" && s.Refusal == "" }

// Look finds the servers as Find does, and looks for some seconds whether they work.
func (s *System) Look(ctx context.Context, own ...process.Identity) ([]Server, error) {
	servers, err := s.Find(ctx, own...)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() { servers[i].Idle = s.ProveIdle(ctx, servers[i], LookTiming(s.Timing)) })
	}
	all.Wait()
	for i := range servers {
		servers[i].Line = servers[i].line()
		for _, list := range []*[]string{&servers[i].Models, &servers[i].Reasons, &servers[i].Clients,
			&servers[i].Losses, &servers[i].Missing} {
			*list = append([]string{}, *list...) // an empty list in the document, never null
		}
	}
	return servers, nil
}

// line says who it is, whether it works, and why slipway would not stop it.
func (s Server) line() string {
	about := s.Idle.Sentence()
	if s.Refusal != "" {
		about += "; slipway does not stop it: " + s.Refusal
		if s.Kind == "unknown" || s.Reasons != nil && s.Reasons[0] == s.Refusal {
			about = s.Refusal
		}
	}
	return fmt.Sprintf("%s: %s", s.Name(), about)
}

// Name is the server for people: title, pid, port.
func (s Server) Name() string {
	title := s.Title
	if s.kind == nil && s.Exe != "" {
		title = quoted(filepath.Base(s.Exe))
	}
	if s.Home != "" {
		title += " of " + plain(s.Home)
	}
	if s.PID == 0 {
		return fmt.Sprintf("%s on port %d", title, s.Port)
	}
	return fmt.Sprintf("%s (pid %d) on port %d", title, s.PID, s.Port)
}

// System is what this package may touch, and how patient it is. The zero value of a field is its default in New.
type System struct {
	Home     string   // slipway's home; records are in state/neighbors
	UserHome string   // the user's home, for control sockets and lms
	UID      int      // whose servers may be stopped
	Program  []string // how to run slipway again: absolute path, then the arguments before the verb
	// Launchctl and Systemctl are absolute paths, empty where the machine has none.
	Launchctl, Systemctl string
	// AgentFolder is where the one-shot LaunchAgent goes, empty off macOS.
	AgentFolder string
	// ExtraPorts are also looked at, such as the one that slipway wants.
	ExtraPorts []int
	Timing     Timing
	// ChangedPrograms lets a neighbour be started by a program file that is another one than was stopped.
	ChangedPrograms bool
	// Say gets one sentence a step, for people. It may be nil.
	Say func(string)

	step func(name string) // test seam: called at each step of stop and restore
	ours localPorts

	own    sync.Once // ownSum
	ownIs  record.Sum
	ownErr error
}

// Timing is how long things may take. Values and reasons: DefaultTiming.
type Timing struct {
	Request  time.Duration // one HTTP question
	Drain    time.Duration // a listener that does not answer may be draining: ask again this long
	Samples  int           // of idleness, before stopping
	Wedged   time.Duration // work that does not move for this long looks stuck
	Span     time.Duration // from the first to the last of them
	Exit     time.Duration // for the process to end after the signal
	Respawn  time.Duration // watch the port this long after the end for a successor
	Load     time.Duration // for a restored server to answer with its model
	Signal   time.Duration // a signalled process that answers this long after all was not signalled, or survived
	Poll     time.Duration // between looks while waiting
	Services time.Duration // retry launchctl bootstrap this long
}

// DefaultTiming: 1 s a question on loopback; 5 s of drain (MTPLX #409); 3 samples over 15 s (spec, step 3); 30 s to
// exit, since ds4-server writes a checkpoint; 10 s without movement, since a GPU works on one step for a second or two;
// 10 min to load, since 100 GB come from a disk; 60 s, twice the exit's bound; 15 s for launchctl (error 5 lasts about
// 5 s after a bootout).
var DefaultTiming = Timing{Request: time.Second, Drain: 5 * time.Second, Wedged: 10 * time.Second, Samples: 3,
	Span: 15 * time.Second, Exit: 30 * time.Second,
	Respawn: 2 * time.Second, Load: 10 * time.Minute, Signal: time.Minute, Poll: 250 * time.Millisecond,
	Services: 15 * time.Second}

// IdleFor demands idleness over a longer span than the default; a shorter one stays the default. The pause between
// samples does not grow.
func (t Timing) IdleFor(span time.Duration) Timing {
	if span > t.Span {
		apart := t.Span / time.Duration(max(t.Samples-1, 1))
		t.Samples, t.Span = int((span+apart-1)/apart)+1, span
	}
	return t
}

// LookTiming is for showing only: 3 samples, a second apart.
func LookTiming(t Timing) Timing {
	t.Samples, t.Span = 3, 2*time.Second
	return t
}

func (s *System) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}

func (s *System) at(step string) {
	if s.step != nil {
		s.step(step)
	}
}

func (s *System) folder() record.Folder { return record.Folder{Home: s.Home} }

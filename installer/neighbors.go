package installer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/machine"
	"slipway/installer/neighbor"
	"slipway/installer/neighbor/record"
	"slipway/installer/plan"
	"slipway/installer/process"
	"slipway/profiles"
)

// neighborhood is what other servers mean for a plan.
type neighborhood struct {
	system      *neighbor.System
	stops       []plan.StoppedServer
	rebootAgent string
	lines       []string // of those that still run, for a person to see
	problem     string
	fix         string // of the problem; empty: the usual one
	ways        string
	otherPort   int // a port that is free, where the wanted one is not; 0: none known
	// whose memory the launch would need, and the ways around; named servers are not in it
	contended string
	stopped   []neighbor.Outcome // by slipway, and not back yet
}

// allowedKinds are the kinds that --allow-stop names, each by its id: `llama-server` is accepted for `llama.cpp`.
func allowedKinds(named plan.Kinds) (plan.Kinds, error) {
	var ids []string
	for _, name := range named.List() {
		id, ok := neighbor.KindNamed(name)
		if !ok {
			return "", &ChoiceError{fmt.Sprintf("--allow-stop is %q, and slipway knows %s", name,
				strings.Join(neighbor.Kinds(), ", "))}
		}
		ids = append(ids, id)
	}
	return plan.KindsOf(ids), nil
}

// smallNeedBytes: a plan that needs less competes with no other server for memory.
const smallNeedBytes = 1 << 30

// lookNeighbors finds the servers that a launch would meet: whose port or memory it wants, and those that may be
// stopped because they were named. Servers that slipway has stopped already stay part of the plan until they are back.
func lookNeighbors(ctx context.Context, in Input, at Environment, home string, k known, c choice,
	facts machine.Facts) (neighborhood, error) {
	var n neighborhood
	system, err := neighbor.New(home, []string{at.Executable})
	if err != nil {
		if !in.Launch { // without a home folder of the user nothing was ever stopped
			err = nil
		}
		return n, err
	}
	if k.view.Err == nil { // a home that is refused is not read either
		if n.stopped, err = system.Pending(); err != nil {
			return n, err
		}
	}
	if !in.Launch {
		return n, nil
	}
	system.Timing = system.Timing.IdleFor(time.Duration(in.IdleForS) * time.Second)
	n.system = system
	port := in.Port
	system.ExtraPorts = []int{port}
	quick := system.Quick()
	var own []process.Identity
	if k.home != nil {
		if status, err := launch.Look(ctx, k.home.Root, k.home.Path); err == nil {
			own = append(own, status.Record.Process)
		}
	}
	// Without a name that may be stopped, and without a need of much memory, only the wanted port matters: no other
	// server is asked.
	look := func() ([]neighbor.Server, error) { return quick.At(ctx, port) }
	if in.AllowStop != "" || c.needs > smallNeedBytes {
		look = func() ([]neighbor.Server, error) { return quick.Find(ctx, own...) }
	}
	servers, err := look()
	if err != nil {
		return n, err
	}
	if slices.ContainsFunc(servers, func(s neighbor.Server) bool { return s.Listens(port) }) {
		n.otherPort = n.freePort(ctx, DefaultPort, port, in.MonitorPort)
	}
	servers = slices.DeleteFunc(servers, func(s neighbor.Server) bool {
		return s.PID == 0 || slices.ContainsFunc(own, func(id process.Identity) bool { return id.PID == s.PID }) ||
			s.Kind == "unknown" && !s.Listens(port)
	})
	needed := n.weigh(in, servers, c, facts, pinned(k, c.unproven), port)
	n.prove(ctx, needed)
	n.decide(in, needed)
	n.already(in)
	slices.SortFunc(n.stops, func(a, b plan.StoppedServer) int { return a.Port - b.Port })
	if len(n.stops) > 0 {
		n.rebootAgent = system.RebootAgentPath()
	}
	return n, nil
}

// weigh picks, among the servers whose kind was named, those whose port or memory the launch needs. Where none is in
// the way, all that were named are meant, as far as they hold a model; not so where one of the kind was in the way and
// is stopped already: the same command a second time stops no other server.
func (n *neighborhood) weigh(in Input, servers []neighbor.Server, c choice, facts machine.Facts,
	models []profiles.Candidate, port int) []neighbor.Conflict {
	need := neighbor.Need{Port: port, OtherPort: n.otherPort}
	ceiling := facts.Sizing().RAMBytes
	if facts.WorkingSet.Known {
		ceiling = facts.WorkingSet.Value
	}
	for _, s := range servers {
		ceiling -= s.FootprintBytes
	}
	if c.needs > smallNeedBytes {
		need.NeedsBytes, need.AvailableBytes = c.needs, ceiling
		need.Smaller = smaller(c, models, ceiling)
	}
	conflicts := neighbor.Conflicts(servers, need)
	records, _ := n.system.Folder().List()
	var inTheWay, named []neighbor.Conflict
	for _, s := range servers {
		at := slices.IndexFunc(conflicts, func(c neighbor.Conflict) bool {
			return c.Server.PID == s.PID && c.Server.Port == s.Port
		})
		if at >= 0 && conflicts[at].Port {
			n.ways = conflicts[at].Ways()
		}
		switch {
		case !in.AllowStop.Has(s.Kind) && at >= 0 && conflicts[at].Memory:
			n.contended = strings.TrimSpace(n.contended + " " + conflicts[at].Ways())
		case !in.AllowStop.Has(s.Kind):
		case at >= 0:
			inTheWay = append(inTheWay, conflicts[at])
		case s.UID != n.system.UID: // it is not in the way, and not ours to stop
		case slices.ContainsFunc(records, func(r record.Record) bool { return r.Server == s.Kind }):
		case len(s.Models) > 0 || s.Stoppable():
			named = append(named, neighbor.Conflict{Server: s, Why: s.Title + " was named to be stopped."})
		}
	}
	if len(inTheWay) > 0 {
		return inTheWay
	}
	return named
}

// gigabyte is the unit in which a budget is offered.
const gigabyte = 1e9

// smaller is what could be chosen instead and fits into what is left; nil: nothing, or there is no need to.
func smaller(c choice, models []profiles.Candidate, leftBytes int64) *neighbor.Smaller {
	gigabytes := leftBytes / gigabyte
	if c.needs <= leftBytes || gigabytes < 1 {
		return nil
	}
	sized := c.input
	sized.UserBudgetBytes = gigabytes * gigabyte
	r, ok := profiles.Smaller(sized, models, profiles.All())
	if !ok {
		return nil
	}
	return &neighbor.Smaller{Model: r.ModelID, Profile: r.ProfileID, Memory: fmt.Sprintf("%dGB", gigabytes),
		WindowTokens: r.WindowTokens, NeedsBytes: r.UsedBytes}
}

// portStep leads from our port to others that end in the same digit: none of them is the port of a server that is
// known.
const portStep = 10

// freePort looks for a port that could be taken instead: the first, or one of the next, and none of those that are not
// wanted. The ports of stopped servers are not free.
func (n neighborhood) freePort(ctx context.Context, first int, not ...int) int {
	for port := first; port < first+10*portStep; port += portStep {
		promised := slices.ContainsFunc(n.stopped, func(o neighbor.Outcome) bool { return o.Port == port })
		if !slices.Contains(not, port) && !promised && !launch.LookPort(ctx, port).Taken {
			return port
		}
	}
	return 0
}

// freePorts are the ports that a person can choose instead of those in use.
func (n neighborhood) freePorts(ctx context.Context, w *plan.World, r plan.Request) {
	if w.PortTaken && w.FreePort == 0 {
		w.FreePort = n.freePort(ctx, DefaultPort, r.Port, r.MonitorPort)
	}
	if w.MonitorTaken {
		w.FreeMonitor = n.freePort(ctx, DefaultMonitorPort, r.Port, r.MonitorPort, w.FreePort)
	}
}

// prove looks for some seconds whether they work. The long proof comes directly before the signal.
func (n *neighborhood) prove(ctx context.Context, list []neighbor.Conflict) {
	var all sync.WaitGroup
	for i := range list {
		if s := &list[i].Server; s.Stoppable() {
			all.Go(func() { s.Idle = n.system.ProveIdleToStop(ctx, *s, neighbor.LookTiming(n.system.Timing)) })
		}
	}
	all.Wait()
}

// decide adds them to the plan, and says why one of them cannot be stopped now.
func (n *neighborhood) decide(in Input, list []neighbor.Conflict) {
	for _, c := range list {
		s := c.Server
		switch {
		case !s.Stoppable():
			n.problem = (&neighbor.RefusedError{Server: s, Why: s.Refusal}).Error() + "."
		case len(s.Losses) > 0 && !in.AcceptLoss:
			n.problem = (&neighbor.LossError{Server: s}).Error() + "."
			n.fix = "Add --accept-loss if that is all right, use another port, or stop it yourself; slipway " +
				"leaves it alone."
		case s.State != neighbor.StateIdle:
			n.problem = (&neighbor.NotIdleError{Server: s, Idle: s.Idle}).Error() + "."
		}
		id := s.Identity()
		n.stops = append(n.stops, plan.StoppedServer{Ports: s.Ports, Kind: s.Kind, Title: s.Title, Port: s.Port,
			PID:     s.PID,
			StartUS: id.StartUS, BootID: id.BootID, Exe: id.Exe, Channel: string(s.Channel), Models: s.Models})
		line := c.Why
		for _, way := range c.Gentle {
			line += " Another way: " + way
		}
		line += " " + s.StopLine(time.Now())
		if len(s.Losses) > 0 {
			line += " It might not return as it is: " + strings.Join(s.Losses, "; ") + "."
		}
		if len(s.Missing) > 0 {
			line += " Not as before: " + strings.Join(s.Missing, "; ") + "."
		}
		n.lines = append(n.lines, line)
	}
}

// stoppedCheck is a server that slipway has stopped and that is not back yet, as a check shows it.
func stoppedCheck(o neighbor.Outcome) plan.Check {
	c := plan.Check{ID: "neighbors", Status: "warn", Severity: "warning", Observed: strings.TrimSuffix(o.Sentence, "."),
		Expected: "every server that slipway stopped runs again",
		Fix:      "Start it again with slipway restore; slipway setup, up and down do so too.",
		Command:  []string{"slipway", "restore"}, DocsURL: plan.DocsURL + "#neighbors"}
	held := "It is started again when our server ends."
	if o.Unloaded {
		c.Expected, c.Fix = "every model that slipway unloaded is loaded again",
			strings.Replace(c.Fix, "Start", "Load", 1)
		held = "It is loaded again when our server ends."
	}
	switch o.Result {
	case neighbor.Held:
		c.Status, c.Severity, c.Fix, c.Command = "ok", "info", held, []string{}
	case neighbor.Waiting:
		c.Status, c.Severity, c.Fix, c.Command = "pending", "info", "", []string{}
	}
	return c
}

// already adds the named servers that slipway has stopped before and that are not back yet.
func (n *neighborhood) already(in Input) {
	records, _ := n.system.Folder().List()
	for _, r := range records {
		if !in.AllowStop.Has(r.Server) || slices.ContainsFunc(n.stops,
			func(s plan.StoppedServer) bool { return s.Port == r.Port && s.PID == r.PID }) {
			continue
		}
		n.stops = append(n.stops, plan.StoppedServer{Kind: r.Server, Title: r.Title, Port: r.Port, PID: r.PID,
			StartUS: r.StartUS, BootID: r.BootID, Exe: r.Exe, Channel: string(r.Channel),
			Models: neighbor.ModelIDs(r.Models)})
	}
}

// into adds the neighbours to a look at the world.
func (n neighborhood) into(w *plan.World) {
	for _, o := range n.stopped {
		w.Warnings = append(w.Warnings, stoppedCheck(o))
	}
	w.StopsDone = true
	for _, stop := range n.stops {
		w.StopsDone = w.StopsDone && apply.IsStopped(n.system, stop)
	}
	w.StopsProblem, w.StopsFix, w.StopLines, w.Contended = n.problem, n.fix, strings.Join(n.lines, " "), n.contended
	w.FreePort = n.otherPort
	if w.PortWays == "" {
		w.PortWays = n.ways
	}
}

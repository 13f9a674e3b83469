package plan

import (
	"fmt"
	"strings"

	"slipway/fault"
	"slipway/units"
)

// State is how far an action is.
type State string

// The states of an action.
const (
	Done    State = "done"
	Pending State = "pending"
	Blocked State = "blocked"
)

// World is one look at what is there. It holds observations only.
type World struct {
	HomeReady     bool   // our home with marker and folders
	HomeRefused   string // why the home cannot be ours; empty when it can
	HomeClosed    string // why nothing can be written in the home, or no home can be made; empty when it can
	JournalDamage string // what is wrong with the journal of an open plan; empty when nothing is
	HomeConflict  string // what is where one of our folders should be

	ListWhole   bool   // the model's file list is known, with hashes as good as they were asked for
	ListProblem string // why that list may not be used; empty when it may

	ModelMissingBytes int64  // of the lock's files, what is not whole yet; 0 when all are
	ModelWhole        bool   // every file is there with its hash
	ModelProblem      string // why the model cannot be fetched (no lock, refused file), empty when it can

	Draft DraftFiles // of the draft, where it has a repository of its own

	EngineWhole     bool
	EngineProblem   string // why there is no way to get a server program
	EngineUntrusted string // there is a prebuilt one, and it is not the one that this program trusts

	Warnings []Check // what a person should know and what stops nothing

	SettingsWhole bool

	ServerRunning bool   // our server answers with these settings
	ReceiptDamage string // what is wrong with a receipt, a sentence; empty when nothing is
	LockDamage    string // what is wrong with the lock beside the model; empty when nothing is
	StoppedBy     string // home of another slipway that stopped our server and starts it again; empty: none
	ServerHung    bool   // a server of ours lives in this home and does not answer
	OurServerPID  int    // any server of ours that lives in this home, 0 when none
	PortOwner     string // who holds the port when it is not us; empty when it is free
	PortTaken     bool
	MonitorOwner  string // the same of the monitor's port
	MonitorTaken  bool
	FreePort      int // another one that is free, where the wanted one is not; 0: none known
	FreeMonitor   int // the same for the monitor's

	StopsDone    bool   // every server that the plan stops is stopped, or gone
	StopsProblem string // why one of them cannot be stopped now; empty when it can
	StopsFix     string // what a person can do about that; empty: wait, or go around it
	StopLines    string // who is stopped, in words that a person has to see
	Contended    string // whose memory our server would need, and the ways around; empty when nobody's
	PortWays     string // ways around the owner of the port, where it is a server that slipway knows

	InPlaceFolder string // in which the model could be used in place; empty: none is known

	FreeBytes int64 // on the volume of the home
	FreeKnown bool

	NotFit     string // why the model does not fit this machine; empty when it does
	OpenDigest string // digest of a plan that was begun and not finished
}

// DraftFiles is the same of the draft's files.
type DraftFiles struct {
	ListWhole    bool
	ListProblem  string
	Whole        bool
	MissingBytes int64
}

// Blocker is something that keeps a plan from being applied.
type Blocker struct {
	Kind     BlockerKind `json:"kind"`
	Sentence string      `json:"sentence"` // what and why
	Fix      string      `json:"fix"`      // what next
	Command  []string    `json:"command"`  // exact argv of the next step, empty when a person must act
}

// BlockerKind is the kind of a blocker.
type BlockerKind string

// The kinds of blockers.
const (
	HomeBlocked    BlockerKind = "home"
	FolderBlocked  BlockerKind = "folder"
	JournalBlocked BlockerKind = "journal"
	ModelBlocked   BlockerKind = "model"
	ListBlocked    BlockerKind = "list"
	EngineBlocked  BlockerKind = "engine"
	TrustBlocked   BlockerKind = "engine-not-trusted"
	PortBlocked    BlockerKind = "port"
	StopBlocked    BlockerKind = "neighbor"
	SpaceBlocked   BlockerKind = "space"
	MemoryBlocked  BlockerKind = "memory"
)

// Class is the class of a set-up that is blocked by this kind.
func (k BlockerKind) Class() fault.Class {
	switch k {
	case HomeBlocked, ModelBlocked, EngineBlocked:
		return fault.Human
	case FolderBlocked, ListBlocked:
		return fault.Stale
	case TrustBlocked, JournalBlocked:
		return fault.Integrity
	case PortBlocked, StopBlocked:
		return fault.Refused
	case SpaceBlocked:
		return fault.NoSpace
	}
	return fault.NotReady
}

// Check is one record of a check, in the shape that every verb uses.
type Check struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`   // "ok", "pending", "warn", "fail", "unknown"
	Severity string   `json:"severity"` // "info", "warning", "error"
	Observed string   `json:"observed"`
	Expected string   `json:"expected"`
	Fix      string   `json:"fix"`
	Command  []string `json:"command"`
	DocsURL  string   `json:"docs_url"`
}

// Assessment is a plan compared with the world.
type Assessment struct {
	States   map[string]State `json:"states"` // by action id
	Ready    bool             `json:"ready"`  // launchable now: everything but the launch is done
	CanApply bool             `json:"can_apply"`
	Blockers []Blocker        `json:"blockers"`
	Checks   []Check          `json:"checks"`
}

// PendingCount is how many actions are not done.
func (s Assessment) PendingCount() int {
	n := 0
	for _, state := range s.States {
		if state != Done {
			n++
		}
	}
	return n
}

// marginBytes is kept free beyond what a plan writes: logs, state, and the build's output twice.
const marginBytes = 64 << 20

// Judge says what is done, pending and in the way.
func Judge(p Plan, w World) Assessment {
	s := Assessment{States: map[string]State{}, Blockers: []Blocker{}, Checks: []Check{}}
	done := map[Kind]bool{
		ListAction: w.ListWhole, HomeAction: w.HomeReady, ModelAction: w.ModelWhole, EngineAction: w.EngineWhole,
		DraftList: w.Draft.ListWhole, DraftAction: w.Draft.Whole,
		SettingsAction: w.SettingsWhole, LaunchAction: w.ServerRunning, StopsAction: w.StopsDone,
	}
	blocked := map[Kind]bool{}
	block := func(kind Kind, b Blocker) {
		blocked[kind] = true
		if b.Command == nil {
			b.Command = []string{}
		}
		s.Blockers = append(s.Blockers, b)
	}
	d := p.Decisions
	if w.HomeRefused != "" {
		block(HomeAction, Blocker{Kind: HomeBlocked, Sentence: w.HomeRefused,
			Fix: "Choose another folder with --home, or an empty one."})
	}
	if w.HomeClosed != "" && w.HomeRefused == "" && !allDone(p, done) {
		block(HomeAction, Blocker{Kind: HomeBlocked, Sentence: w.HomeClosed,
			Fix: "Choose another folder with --home, or fix its permissions."})
	}
	if w.JournalDamage != "" {
		block(HomeAction, Blocker{Kind: JournalBlocked, Sentence: w.JournalDamage,
			Fix: "The files themselves are checked by their hashes, so setting the journal aside loses nothing: " +
				"add --set-aside-journal.",
			Command: []string{"slipway", "setup", "--set-aside-journal"}})
	}
	if w.HomeConflict != "" {
		block(HomeAction, Blocker{Kind: FolderBlocked, Sentence: w.HomeConflict,
			Fix: "Move it away and run the same command again; slipway does not overwrite what it did not make."})
	}
	if w.ListProblem != "" {
		block(ListAction, Blocker{Kind: ListBlocked, Sentence: w.ListProblem, Fix: "Choose another model: slipway " +
			"models list",
			Command: []string{"slipway", "models", "list"}})
	}
	if w.Draft.ListProblem != "" {
		block(DraftList, Blocker{Kind: ListBlocked, Sentence: w.Draft.ListProblem, Fix: "Set up without it: add " +
			"--draft none."})
	}
	if !w.ModelWhole && w.ModelProblem != "" {
		block(ModelAction, Blocker{Kind: ModelBlocked, Sentence: w.ModelProblem,
			Fix:     "Choose another model: slipway models list",
			Command: []string{"slipway", "models", "list"}})
	}
	if w.NotFit != "" {
		block(ModelAction, Blocker{Kind: MemoryBlocked, Sentence: w.NotFit,
			Fix:     "Choose a smaller model or another profile: slipway models list",
			Command: []string{"slipway", "models", "list"}})
	}
	if !w.EngineWhole && w.EngineProblem != "" {
		block(EngineAction, Blocker{Kind: EngineBlocked, Sentence: w.EngineProblem,
			Fix: "Install Go 1.26 or newer (https://go.dev/dl/), then run the same command again."})
	}
	if !w.EngineWhole && w.EngineUntrusted != "" {
		block(EngineAction, Blocker{Kind: TrustBlocked, Sentence: w.EngineUntrusted,
			Fix: "Fetch the release again, both programs together."})
	}
	if need := needBytes(p, w); w.FreeKnown && need > 0 && w.FreeBytes < need {
		b := Blocker{Kind: SpaceBlocked,
			Sentence: fmt.Sprintf("The volume of %s has %s free, and the plan needs %s.", d.Home,
				units.Short(w.FreeBytes), units.Short(need)),
			Fix: "Free some space or choose another volume with --home."}
		if w.InPlaceFolder != "" && !w.ModelWhole {
			b.Fix = fmt.Sprintf("Free some space, choose another volume with --home, or use the weights in %q where "+
				"they are with --in-place; that folder must then stay as it is.", w.InPlaceFolder)
			b.Command = []string{"slipway", "setup", "--in-place"}
		}
		block(ModelAction, b)
	}
	if len(d.Stops) > 0 && !w.StopsDone && w.StopsProblem != "" {
		block(StopsAction, Blocker{Kind: StopBlocked, Sentence: w.StopsProblem,
			Fix: orWords(w.StopsFix, "Wait until it is idle, "+withoutIt(w.FreePort)+", or stop it yourself; "+
				"slipway leaves it alone."), Command: []string{"slipway", "neighbors"}})
	}
	if b, blocked := portsInUse(d, w); blocked {
		block(LaunchAction, b)
	}
	for _, a := range p.Actions {
		switch {
		case blocked[a.Kind]:
			s.States[a.ID] = Blocked
		case done[a.Kind]:
			s.States[a.ID] = Done
		default:
			s.States[a.ID] = Pending
		}
	}
	s.CanApply = len(s.Blockers) == 0
	filesWhole := w.ModelWhole && (d.Draft == nil || w.Draft.Whole)
	s.Ready = s.CanApply && w.HomeReady && filesWhole && w.EngineWhole && w.SettingsWhole && !w.ServerHung &&
		w.ReceiptDamage == ""
	s.Checks = append(checksOf(p, w, s), w.Warnings...)
	return s
}

// portsInUse is the blocker of a launch whose ports others hold that the plan does not stop; it names both at once, and
// the command with ports that are free.
func portsInUse(d Decisions, w World) (b Blocker, blocked bool) {
	if !d.Request.Launch || w.ServerRunning {
		return b, false
	}
	port := w.PortTaken && (w.StopsDone || !d.StopsHolderOf(d.Request.Port, 0))
	monitor := w.MonitorTaken && (w.StopsDone || !d.StopsHolderOf(d.Request.MonitorPort, 0))
	b = Blocker{Kind: PortBlocked, Command: []string{"slipway", "setup"}}
	owner, monitorOwner := orWords(w.PortOwner, "another program"), orWords(w.MonitorOwner, "another program")
	const others = "; slipway never moves to another port by itself."
	switch {
	case port && monitor:
		b.Sentence = fmt.Sprintf("Port %d is in use by %s, and port %d, the monitor's, by %s.", d.Request.Port, owner,
			d.Request.MonitorPort, monitorOwner)
		if owner == monitorOwner {
			b.Sentence = fmt.Sprintf("Ports %d and %d, the monitor's, are in use by %s.", d.Request.Port,
				d.Request.MonitorPort, owner)
		}
		b.Fix = orWords(strings.Replace(w.PortWays, "another port with --port", "other ports with --port and "+
			"--monitor-port", 1), "Choose other ports with --port and --monitor-port, or stop those programs yourself"+
			others)
	case port:
		b.Sentence = fmt.Sprintf("Port %d is in use by %s.", d.Request.Port, owner)
		b.Fix = orWords(w.PortWays, "Choose another port"+freeOne(w.FreePort)+", or stop that program yourself"+others)
	case monitor:
		b.Sentence = fmt.Sprintf("Port %d, the monitor's, is in use by %s.", d.Request.MonitorPort, monitorOwner)
		b.Fix = "Choose another port for the monitor with --monitor-port, or stop that program yourself" + others
	}
	if port && w.FreePort != 0 {
		b.Command = append(b.Command, "--port", fmt.Sprint(w.FreePort))
	}
	if monitor && w.FreeMonitor != 0 {
		b.Command = append(b.Command, "--monitor-port", fmt.Sprint(w.FreeMonitor))
	}
	if port && w.FreePort == 0 || monitor && w.FreeMonitor == 0 {
		b.Command = nil
	}
	return b, port || monitor
}

func allDone(p Plan, done map[Kind]bool) bool {
	for _, a := range p.Actions {
		if !done[a.Kind] {
			return false
		}
	}
	return true
}

// needBytes is what is still to be written, with the margin; 0 when everything is there.
func needBytes(p Plan, w World) int64 {
	need := w.ModelMissingBytes + w.Draft.MissingBytes
	if a, ok := p.Action(EngineAction); ok && !w.EngineWhole {
		need += a.Touches.Bytes
	}
	if need == 0 {
		return 0
	}
	return need + marginBytes
}

// freeOne names the flag of another port, and one that is free where one is known.
func freeOne(port int) string {
	if port == 0 {
		return " with --port"
	}
	return fmt.Sprintf(" (--port %d is free)", port)
}

// withoutIt is how to do without a stop: another port where the wanted one is contended, else not to ask for it.
func withoutIt(port int) string {
	if port == 0 {
		return "leave out its --allow-stop"
	}
	return "use another port" + freeOne(port)
}

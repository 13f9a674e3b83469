package plan

// Class is a kind of permission. Each needs its own grant.
type Class string

// The classes, from harmless to never. Nothing grants sudo, and nothing grants killing another's process.
const (
	Read     Class = "read"
	Download Class = "download"
	Write    Class = "write"  // in our own home
	Build    Class = "build"  // runs the Go toolchain
	Launch   Class = "launch" // starts our own server
	Unproven Class = "told"   // installs files that only the hub vouches for
	Stop     Class = "stop"   // stops a server that is not ours: granted by name or by the plan's digest only
	OpenLAN  Class = "lan"    // listens beyond this machine
)

// Kind says which worker carries an action out.
type Kind string

// The kinds, in the order of a plan.
const (
	ListAction     Kind = "list" // only for a model whose lock is not inside this program; before any other change
	HomeAction     Kind = "home"
	ModelAction    Kind = "model"
	DraftList      Kind = "draft-list" // only for a draft of a repository of its own, as those of the model are
	DraftAction    Kind = "draft"
	EngineAction   Kind = "engine"
	SettingsAction Kind = "settings"
	StopsAction    Kind = "neighbors" // only in a plan that stops a server that is not ours
	LaunchAction   Kind = "launch"
)

// Touches is what an action may change.
type Touches struct {
	Paths         []string `json:"paths"`          // below the home, slashes; "." is the home itself
	Bytes         int64    `json:"bytes"`          // written to the home, about
	DownloadBytes int64    `json:"download_bytes"` // fetched from the network, about
	Ports         []int    `json:"ports"`
	Processes     []string `json:"processes"` // started or stopped, in words
}

// Action is one step. Apply runs actions in order and chooses nothing.
type Action struct {
	ID           string  `json:"id"`
	Kind         Kind    `json:"kind"`
	Sentence     string  `json:"sentence"`
	Consent      []Class `json:"consent"`
	Touches      Touches `json:"touches"`
	Precondition string  `json:"precondition"`
	Undo         string  `json:"undo"`
}

// Plan is decisions, the actions that follow from them, and the digest over both.
type Plan struct {
	SchemaVersion int       `json:"schema_version"`
	Digest        string    `json:"digest"` // "sha256:" and 64 hex digits
	Decisions     Decisions `json:"decisions"`
	Actions       []Action  `json:"actions"`
}

// Classes lists every class that the actions need, each once, in the order of first need.
func (p Plan) Classes() []Class {
	var all []Class
	seen := map[Class]bool{}
	for _, a := range p.Actions {
		for _, c := range a.Consent {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	return all
}

// Action finds an action by its kind.
func (p Plan) Action(k Kind) (Action, bool) {
	for _, a := range p.Actions {
		if a.Kind == k {
			return a, true
		}
	}
	return Action{}, false
}

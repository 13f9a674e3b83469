package profiles

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"slipway/profiles/strict"
	"slipway/wire"
)

// Prefill policies, by the names of the server's probe.
const (
	PrefillExact      = "exact"       // full attention
	PrefillSinkWindow = "sink_window" // approximate: the first keys, the last keys, and a dense tail
)

// Window is what a profile wants of the context window. Want is cut to the model's own window. Floor is where giving
// up begins to cost something else than the window: below it restore points go first, then the KV format.
type Window struct {
	WantTokens  int `toml:"want_tokens" json:"want_tokens"`
	FloorTokens int `toml:"floor_tokens" json:"floor_tokens"`
}

// Memory is a profile's own ceiling (0: none) and the number of saved states kept for reuse.
type Memory struct {
	BudgetBytes   int64 `toml:"budget_bytes" json:"budget_bytes"`
	RestorePoints int   `toml:"restore_points" json:"restore_points"`
}

// KV is the wanted format and, in order, those that may be taken instead when memory is short. An empty list means
// that the format is never given up.
type KV struct {
	Format   KVFormat   `toml:"format" json:"format"`
	Fallback []KVFormat `toml:"fallback" json:"fallback"`
}

// Prefill is the policy and its numbers. The four limits belong to sink_window: full-attention queries at position t
// see keys p < Sink or p > t - Window; the last DenseTail rows of a cold prompt, or ContinuingTail rows of a
// continued one, are dense.
type Prefill struct {
	Policy               string `toml:"policy" json:"policy"`
	ChunkTokens          int    `toml:"chunk_tokens" json:"chunk_tokens"`
	SinkTokens           int    `toml:"sink_tokens" json:"sink_tokens,omitempty"`
	WindowTokens         int    `toml:"window_tokens" json:"window_tokens,omitempty"`
	DenseTailTokens      int    `toml:"dense_tail_tokens" json:"dense_tail_tokens,omitempty"`
	ContinuingTailTokens int    `toml:"continuing_tail_tokens" json:"continuing_tail_tokens,omitempty"`
}

// DraftChoice is the kind of draft and how many tokens it proposes at once.
type DraftChoice struct {
	Kind   DraftKind `toml:"kind" json:"kind"`
	Tokens int       `toml:"tokens" json:"tokens"`
}

// Profile says what a run wants. Approximations are named sentences for receipts, usage and monitor; an exact profile
// has none.
type Profile struct {
	SchemaVersion  int         `toml:"schema_version" json:"schema_version"`
	ID             string      `toml:"id" json:"id"`
	Title          string      `toml:"title" json:"title"`
	Experimental   bool        `toml:"experimental" json:"experimental"`
	Approximations []string    `toml:"approximations" json:"approximations"`
	Window         Window      `toml:"window" json:"window"`
	Memory         Memory      `toml:"memory" json:"memory"`
	KV             KV          `toml:"kv" json:"kv"`
	Prefill        Prefill     `toml:"prefill" json:"prefill"`
	Draft          DraftChoice `toml:"draft" json:"draft"`
}

// WithDraft is the profile with another draft, of its usual number of tokens; empty: the profile's own.
func (p Profile) WithDraft(kind DraftKind) Profile {
	if kind == "" || kind == p.Draft.Kind {
		return p
	}
	d, ok := DraftOf(kind)
	if !ok {
		d = drafts[0]
	}
	p.Draft = d.choice()
	return p
}

// Capabilities is what a server honours.
type Capabilities = wire.Capabilities

// Unhonoured lists, in sentences, what of the profile a server cannot do; an empty list means that it may be offered.
// A KV format wider than the wanted one honours it, and so does the lack of a draft, which costs speed and changes no
// answer.
func (p Profile) Unhonoured(c Capabilities) []string {
	var missing []string
	if _, ok := p.formatOn(p.KV.Format, &c); !ok {
		missing = append(missing, fmt.Sprintf("profile %s wants KV in %s or wider; this server has %s", p.ID,
			p.KV.Format, list(c.KVFormats)))
	}
	if !slices.Contains(c.PrefillPolicies, p.Prefill.Policy) {
		missing = append(missing, fmt.Sprintf("profile %s wants prefill policy %s; this server has %s", p.ID,
			p.Prefill.Policy, list(c.PrefillPolicies)))
	}
	return missing
}

// Price says what the profile approximates with keys and values in a format, which may be wider than the profile's: a
// sentence.
func (p Profile) Price(kv KVFormat) string {
	var said []string
	for _, a := range p.Approximations {
		if strings.HasPrefix(a, aboutKV) {
			if !kv.Approximate() {
				continue
			}
			a = fmt.Sprintf("%s at %s bit: small, unmeasured differences from 16 bit", aboutKV,
				strings.TrimPrefix(string(kv), "q"))
		}
		said = append(said, a)
	}
	switch {
	case len(p.Approximations) == 0:
		return fmt.Sprintf("Profile %s: full quality.", p.ID)
	case len(said) == 0:
		return fmt.Sprintf("Profile %s: full quality here (keys and values are stored as %s).", p.ID, kv)
	}
	return fmt.Sprintf("Profile %s approximates: %s.", p.ID, strings.Join(said, "; "))
}

// aboutKV begins the approximation that depends on the format of keys and values.
const aboutKV = "keys and values"

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// formatOn is the format itself or the next wider one that the server has. No capabilities: anything goes.
func (p Profile) formatOn(f KVFormat, c *Capabilities) (KVFormat, bool) {
	if c == nil {
		return f, true
	}
	for i := f.rank(); i >= 0; i-- {
		if slices.Contains(c.KVFormats, string(kvFormats[i])) {
			return kvFormats[i], true
		}
	}
	return f, false
}

//go:embed *.toml
var profileFiles embed.FS

// order is the order in which profiles are shown and tried.
var order = []string{"exact", "balanced", "long"}

var bundle = sync.OnceValue(func() []Profile {
	names, err := fs.Glob(profileFiles, "*.toml")
	if err != nil {
		panic("profiles: " + err.Error())
	}
	profiles := make([]Profile, 0, len(names))
	for _, name := range names {
		data, err := profileFiles.ReadFile(name)
		if err != nil {
			panic("profiles: embedded file: " + err.Error())
		}
		p, err := Parse(name, data)
		if err != nil {
			panic("profiles: embedded file: " + err.Error())
		}
		profiles = append(profiles, p)
	}
	slices.SortFunc(profiles, func(a, b Profile) int { return slices.Index(order, a.ID) - slices.Index(order, b.ID) })
	return profiles
})

// All returns the bundled profiles: exact, balanced, long. The slice is the caller's.
func All() []Profile { return slices.Clone(bundle()) }

// ByID finds a bundled profile.
func ByID(id string) (Profile, bool) {
	for _, p := range bundle() {
		if p.ID == id {
			return p, true
		}
	}
	return Profile{}, false
}

var idForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Parse reads one profile file strictly; name is used in messages and must be ID.toml. Errors are *strict.Error.
func Parse(name string, data []byte) (Profile, error) {
	var p Profile
	if err := strict.Decode(name, data, &p); err != nil {
		return Profile{}, err
	}
	if key, why := p.fault(); why != "" {
		return Profile{}, strict.At(name, data, key, why)
	}
	if path.Base(name) != p.ID+".toml" {
		return Profile{}, strict.At(name, data, "id", "is "+p.ID+": the file must be named "+p.ID+".toml")
	}
	return p, nil
}

// fault returns the first wrong key and why; why is empty when all is well.
func (p Profile) fault() (key, why string) {
	switch {
	case p.SchemaVersion != 1:
		return "schema_version", "must be 1"
	case !idForm.MatchString(p.ID):
		return "id", "must be lower-case letters and digits joined by '-'"
	case p.Title == "":
		return "title", "is missing"
	case p.Window.WantTokens < WindowStepTokens || p.Window.WantTokens > 1<<24:
		return "window.want_tokens", fmt.Sprintf("is %d, must be from %d to %d", p.Window.WantTokens, WindowStepTokens,
			1<<24)
	case p.Window.FloorTokens < WindowStepTokens || p.Window.FloorTokens > p.Window.WantTokens ||
		p.Window.FloorTokens%WindowStepTokens != 0:
		return "window.floor_tokens", fmt.Sprintf("is %d, must be a multiple of %d from %d to want_tokens",
			p.Window.FloorTokens, WindowStepTokens, WindowStepTokens)
	case p.Memory.BudgetBytes < 0:
		return "memory.budget_bytes", "is negative; 0 means no budget"
	case p.Memory.RestorePoints < 0 || p.Memory.RestorePoints > 1024:
		return "memory.restore_points", fmt.Sprintf("is %d, must be from 0 to 1024", p.Memory.RestorePoints)
	case !p.KV.Format.Known():
		return "kv.format", fmt.Sprintf("is %q, must be one of f32, f16, q8, q4", p.KV.Format)
	case p.Prefill.ChunkTokens < 16 || p.Prefill.ChunkTokens > 1<<16:
		return "prefill.chunk_tokens", fmt.Sprintf("is %d, must be from 16 to %d", p.Prefill.ChunkTokens, 1<<16)
	}
	narrowest := p.KV.Format.rank()
	for _, f := range p.KV.Fallback {
		if !f.Known() || f.rank() <= narrowest {
			return "kv.fallback", fmt.Sprintf("has %q, must go from the wanted format to narrower ones of f32, "+
				"f16, q8, q4", f)
		}
		narrowest = f.rank()
	}
	switch p.Prefill.Policy {
	case PrefillExact:
		if p.Prefill.SinkTokens != 0 || p.Prefill.WindowTokens != 0 || p.Prefill.DenseTailTokens != 0 ||
			p.Prefill.ContinuingTailTokens != 0 {
			return "prefill.policy", "is exact, which has no sink, window or tails"
		}
	case PrefillSinkWindow:
		if p.Prefill.SinkTokens < 1 || p.Prefill.WindowTokens < 1 || p.Prefill.DenseTailTokens < 1 ||
			p.Prefill.ContinuingTailTokens < 1 {
			return "prefill.policy", "is sink_window, which needs sink_tokens, window_tokens, dense_tail_tokens and " +
				"continuing_tail_tokens"
		}
	default:
		return "prefill.policy", fmt.Sprintf("is %q, must be exact or sink_window", p.Prefill.Policy)
	}
	d, known := DraftOf(p.Draft.Kind)
	switch {
	case !known:
		return "draft.kind", fmt.Sprintf("is %q, must be %s", p.Draft.Kind, DraftChoices())
	case d.Most == 0 && p.Draft.Tokens != 0:
		return "draft.tokens", "must be 0 without a draft"
	case d.Most > 0 && (p.Draft.Tokens < 1 || p.Draft.Tokens > d.Most):
		return "draft.tokens", fmt.Sprintf("is %d, must be from 1 to %d", p.Draft.Tokens, d.Most)
	}
	approximate := p.Prefill.Policy != PrefillExact || p.KV.Format.Approximate() || len(p.KV.Fallback) > 0
	if approximate != (len(p.Approximations) > 0) {
		return "approximations", "must name every approximation, and only an approximate profile has any"
	}
	return "", ""
}

package plan

import (
	"slices"
	"strings"

	"slipway/manifests"
)

// SchemaVersion is the version of plans, plan files and receipts.
const SchemaVersion = 1

// Request is what a person asked for. A plan file carries it, and the decisions are derived from it again.
// Zero values mean "choose for me" and are resolved before the request goes into a file.
type Request struct {
	Model          string `json:"model"`        // manifest id
	Profile        string `json:"profile"`      // profile name
	Port           int    `json:"port"`         // API port, 1..65535
	MonitorPort    int    `json:"monitor_port"` // monitor page, 1..65535
	Launch         bool   `json:"launch"`
	AcceptUnproven bool   `json:"accept_told"` // files that only the hub vouches for may be installed
	// InPlace asks that weights which are on this machine are used in place, and not copied.
	InPlace bool `json:"in_place,omitempty"`
	// AllowStop names the kinds of other servers that may be stopped.
	AllowStop Kinds `json:"allow_stop,omitempty"`
	// AcceptLoss lets one of them be stopped of which not everything can be kept for its return.
	AcceptLoss bool `json:"accept_loss,omitempty"`
	// IdleForS is how many seconds they have to be seen idle before they are stopped; 0: the least, which is 15.
	IdleForS int `json:"idle_for_s,omitempty"`
	// MemoryBytes is the most that sizing may count on; 0: what the machine gives.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Draft names what proposes tokens, by the names of the server's probe; empty: as the profile says.
	Draft string `json:"draft,omitempty"`
	// DiskCacheBytes is the most that restore points may take on disk; DiskCacheOff: none are kept there.
	DiskCacheBytes int64 `json:"disk_cache_bytes,omitempty"`
	// Normalize is the rules that make changing text of system messages stable, as ReadNormalize gives them; empty:
	// none.
	Normalize string `json:"normalize,omitempty"`
	// AllowHosts are names that clients may use in the Host header, as ReadHosts gives them.
	AllowHosts Kinds `json:"allow_hosts,omitempty"`
	// AllowOrigins are origins whose pages may ask, with a key, as ReadOrigins gives them.
	AllowOrigins Kinds `json:"allow_origins,omitempty"`
}

// Kinds is a set of names, such as kinds of other servers: sorted, each once, with commas between; "" is empty.
type Kinds string

// KindsOf makes a set of names.
func KindsOf(names []string) Kinds {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return Kinds(strings.Join(slices.Compact(sorted), ","))
}

// List gives the names, sorted.
func (k Kinds) List() []string {
	if k == "" {
		return nil
	}
	return strings.Split(string(k), ",")
}

// Has reports whether a kind is in the set.
func (k Kinds) Has(name string) bool { return slices.Contains(k.List(), name) }

// DiskCacheOff asks for no restore points on disk.
const DiskCacheOff = -1

// Decisions is everything that a plan rests on and its digest covers.
type Decisions struct {
	Home    string  `json:"home"`     // absolute, symbolic links resolved
	Target  string  `json:"platform"` // GOOS/GOARCH
	Request Request `json:"request"`
	Model   Model   `json:"model"`
	Draft   *Model  `json:"draft,omitempty"` // files of the draft from a repository of its own; nil: there are none
	Profile Profile `json:"profile"`
	Engine  Engine  `json:"engine"`
	// Stops are the servers of others that are stopped for the launch, by port.
	Stops []StoppedServer `json:"stops,omitempty"`
	// RebootAgent is the file outside the home that restores them after a reboot; only where Stops are, and on macOS.
	RebootAgent string `json:"reboot_agent,omitempty"`
}

// Part is one repository's files with the actions that bring them.
type Part struct {
	Model
	What      string // "model" or "draft", for sentences
	ListKind  Kind   // of the action that brings the file list
	FilesKind Kind   // of the one that brings the files
}

// Parts are the model and, where its draft is of another repository, the draft.
func (d Decisions) Parts() []Part {
	parts := []Part{{d.Model, "model", ListAction, ModelAction}}
	if d.Draft != nil {
		parts = append(parts, Part{*d.Draft, "draft", DraftList, DraftAction})
	}
	return parts
}

// Model is the pinned model, or the draft that goes with it.
type Model struct {
	ID            string             `json:"id"`
	Title         string             `json:"title"`
	Repo          string             `json:"repo"`
	Revision      manifests.Revision `json:"revision"`
	License       string             `json:"license"`
	LockDigest    manifests.Digest   `json:"lock_digest"` // of a lock inside this program; empty: there is none
	Files         int                `json:"files"`       // of that lock; 0: there is none
	Bytes         int64              `json:"bytes"`       // about, unless the lock is inside this program
	Embedded      bool               `json:"embedded"`    // inside this program, no network
	UnprovenFiles int                `json:"told_files"`  // only in plans of earlier versions; else 0
	Folder        string             `json:"folder"`      // below the home, slashes
	DownloadBytes int64              `json:"download_bytes"`
	// The file list of other models is fetched and proven while the plan is carried out. Only these decide about it,
	// never the list itself: a plan is the same before and after.
	Include      []string `json:"include,omitempty"`       // globs of the wanted files
	CeilingBytes int64    `json:"ceiling_bytes,omitempty"` // the most that they may have together; 0: the list is known
	ProvenOnly   bool     `json:"proven_only,omitempty"`   // every hash must follow from the revision
	// Tensors is the prefix of the tensors that are cut out of the shards by byte range and written in 4 bit, of which
	// Bytes is the size; empty: the files are taken whole. SHA256 is the digest of those tensors, in the order of their
	// names, where it is known.
	Tensors string           `json:"tensors,omitempty"`
	SHA256  manifests.Digest `json:"sha256,omitempty"`
	// InPlace is the folder of the user's, absolute, in which the files are used as they lie; empty: they are in
	// Folder.
	InPlace string `json:"in_place,omitempty"`
}

// NeedsList reports whether the file list has to be fetched and proven by an action of its own.
func (m Model) NeedsList() bool { return m.CeilingBytes > 0 && m.Tensors == "" }

// MayBeUnproven reports whether bytes may be installed for which only the hub vouches.
func (m Model) MayBeUnproven() bool { return m.CeilingBytes > 0 && !m.ProvenOnly && m.SHA256 == "" }

// Profile is what sizing made of the wanted profile on this machine.
type Profile struct {
	Name          string `json:"name"`
	WindowTokens  int    `json:"window_tokens"`
	KVFormat      string `json:"kv_format"`
	PrefillPolicy string `json:"prefill_policy"`
	Draft         string `json:"draft"`
	Parallel      int    `json:"parallel"`
	Device        string `json:"device"`
	BudgetBytes   int64  `json:"budget_bytes"` // what sizing counted on; 0 when it counted on nothing
	Sentence      string `json:"sentence"`     // which limit binds and what was reduced

	// What is kept of conversations; 0: nothing is kept there.
	CacheMemoryBytes    int64 `json:"cache_memory_bytes"`
	CacheDiskBytes      int64 `json:"cache_disk_bytes"`
	CacheDiskDailyBytes int64 `json:"cache_disk_daily_bytes"`
}

// Engine is the server program: built from source, or the prebuilt one that this installer was compiled to trust.
type Engine struct {
	Origin    string           `json:"origin"`     // "build", "prebuilt" or "" when neither is possible
	ID        string           `json:"id"`         // 16 hex digits that name the source tree, toolchain and target
	Source    manifests.Digest `json:"source"`     // of the source tree; empty for a prebuilt server
	GoVersion string           `json:"go_version"` // empty for a prebuilt server
	Prebuilt  manifests.Digest `json:"prebuilt"`   // of the prebuilt program; empty for a build
}

// Engine origins.
const (
	FromSource = "build"
	Prebuilt   = "prebuilt"
)

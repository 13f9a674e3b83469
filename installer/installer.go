// Package installer joins the packages below it: it looks at the machine and the home, decides, and makes the plan.
// What it returns is a value with the workers that can carry the plan out; it writes nothing.
package installer

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
	"slipway/profiles"
)

// Input is a request and what it means for this run only. The request goes into the plan; the rest does not.
type Input struct {
	plan.Request

	Home   string `json:"-"`      // of the operator, where there is one
	Source string `json:"source"` // folder of slipway's source
	// folder with weights that are to be taken if their hashes are right
	ModelDir         string `json:"model_dir"`
	Deep             bool   `json:"deep"`                   // hash every byte of the model, however large
	LimitBytesPerSec int64  `json:"limit_bytes_per_second"` // of downloads, over all connections; 0: none
	MaxDownloadBytes int64  `json:"max_download_bytes"`     // the most that may be downloaded of the model; 0: any size
	// use the engine that is set up, whatever the source available is
	KeepEngine     bool `json:"-"`
	DiskCacheAuto  bool `json:"disk_cache_auto"`     // choose the disk cache, whatever is set up
	NormalizeGiven bool `json:"normalize_given"`     // Normalize was asked for, also where it is empty
	HostsGiven     bool `json:"allow_hosts_given"`   // AllowHosts was asked for, also where it is empty
	OriginsGiven   bool `json:"allow_origins_given"` // AllowOrigins was asked for, also where it is empty
	ModelSetUp     bool `json:"-"`                   // the model was not asked for: it is set up, or was begun
}

// FillFrom takes from the request that is set up what this one leaves out.
func (in *Input) FillFrom(r plan.Request) {
	sameModel := in.Model == "" || in.Model == r.Model
	in.ModelSetUp = in.Model == "" && r.Model != ""
	in.Model = cmp.Or(in.Model, r.Model)
	if sameModel {
		in.Profile = cmp.Or(in.Profile, r.Profile)
	}
	if sameModel && in.Profile == r.Profile {
		in.MemoryBytes = cmp.Or(in.MemoryBytes, r.MemoryBytes)
	}
	if sameModel {
		in.Draft = cmp.Or(in.Draft, r.Draft)
	}
	// Consent to unproven files is asked for again where such a file is still to be installed.
	in.AcceptUnproven = in.AcceptUnproven || sameModel && r.AcceptUnproven
	in.InPlace = in.InPlace || sameModel && r.InPlace
	if !in.DiskCacheAuto && (sameModel || r.DiskCacheBytes == plan.DiskCacheOff) {
		in.DiskCacheBytes = cmp.Or(in.DiskCacheBytes, r.DiskCacheBytes)
	}
	if !in.NormalizeGiven {
		in.Normalize = r.Normalize
	}
	if !in.HostsGiven {
		in.AllowHosts = r.AllowHosts
	}
	if !in.OriginsGiven {
		in.AllowOrigins = r.AllowOrigins
	}
	in.Port, in.MonitorPort = cmp.Or(in.Port, r.Port), cmp.Or(in.MonitorPort, r.MonitorPort)
}

// The ports of a request without ports.
const (
	DefaultPort        = 8008
	DefaultMonitorPort = 8010
)

// Environment is what the process's surroundings say, collected once by cmd.
type Environment struct {
	UserHome       string
	WorkingDir     string
	ToolPath       string // PATH as the person has it
	RecordedSource string // the folder that this program was compiled in, when the compiler noted it
	Executable     string
	PrebuiltDigest manifests.Digest // of the server that this program trusts; empty: none
	Sources        machine.Sources
	Manifests      []manifests.Manifest // the models that there are; nil: those in this program
	Port           int                  // of a request without one; 0: DefaultPort
	MonitorPort    int                  // of a request without one; 0: DefaultMonitorPort
	Getenv         func(string) string  // for the hub's settings and token
}

// Prepared is the outcome of looking and deciding.
type Prepared struct {
	Facts      machine.Facts
	Server     machine.Fact[profiles.Capabilities] // what the server honours, as its probe says or as is assumed before
	Proposal   profiles.Proposal                   // what was chosen, with the reasons
	Manifest   manifests.Manifest
	Price      string // what the profile costs in quality, a sentence
	Host       string // that a list of files and a model come from
	Plan       plan.Plan
	Assessment plan.Assessment
	Workers    map[plan.Kind]apply.Worker
	Open       bool // this plan was begun and not finished: continuing needs no new consent
	Recorded   bool // a receipt of this plan is there
	Unproven   int  // files of the known file lists for which only the hub vouches
	ListKnown  bool // the file lists of model and draft are known, so that Unproven is all there is
	// DraftCost says what the draft costs in bytes and in context; empty without one.
	DraftCost string
	// Alternatives are other models that a person may want instead. They are not part of the plan.
	Alternatives []Alternative
	// TokensPerSecond is an estimate of how fast a real model answers on the processor; 0 where the GPU answers. It is
	// no part of the plan.
	TokensPerSecond float64

	missing    map[plan.Kind]int64 // bytes of the model and of its draft that are not here yet
	listed     map[plan.Kind]bool  // whether their file lists are known
	hubProblem error               // a setting of the hub or the proxy that cannot be used
	// StopLines say who is going to be stopped, as a person has to see it before agreeing.
	StopLines string
	// Contended says whose memory the launch would need, and what else would do.
	Contended string
	// Stopped are sentences on the servers that slipway has stopped before and that are not back.
	Stopped []string
}

// DownloadBytes is what the plan downloads of model and draft.
func (p Prepared) DownloadBytes() (bytes int64) {
	for _, part := range p.Plan.Decisions.Parts() {
		bytes += p.DownloadBytesOf(part)
	}
	return bytes
}

// HubProblem is a setting of the hub or of a proxy that cannot be used, where the plan will ask the hub; else nil.
func (p Prepared) HubProblem() error {
	for _, part := range p.Plan.Decisions.Parts() {
		if p.DownloadBytesOf(part) > 0 || part.NeedsList() && p.Assessment.States[string(part.ListKind)] != plan.Done {
			return p.hubProblem
		}
	}
	return nil
}

// DownloadBytesOf is what is downloaded of a part: what is missing of a known file list, else what its manifest says.
func (p Prepared) DownloadBytesOf(part plan.Part) int64 {
	switch {
	case part.DownloadBytes == 0 || p.Assessment.States[string(part.FilesKind)] == plan.Done:
		return 0
	case p.ListKnownOf(part) || !part.NeedsList():
		return p.missing[part.FilesKind]
	}
	return part.DownloadBytes
}

// ListKnownOf reports whether the file list of a part is known.
func (p Prepared) ListKnownOf(part plan.Part) bool { return p.listed[part.FilesKind] }

// ChoiceError: what was asked for does not exist or does not go together.
type ChoiceError struct{ Why string }

func (e *ChoiceError) Error() string { return e.Why }

// Fault: see package fault.
func (e *ChoiceError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Usage}
}

// Prepare looks, decides, makes the plan and assesses it. Errors: *ChoiceError, *apply.HomeError only
// for homes that cannot even be named, *apply.JournalError.
func Prepare(ctx context.Context, in Input, at Environment) (Prepared, error) {
	home, err := apply.ResolveHome(in.Home, at.UserHome)
	if err != nil {
		return Prepared{}, err
	}
	in.Port = cmp.Or(in.Port, at.Port, DefaultPort)
	in.MonitorPort = cmp.Or(in.MonitorPort, at.MonitorPort, DefaultMonitorPort)
	if err := in.Check(); err != nil {
		return Prepared{}, err
	}
	if in.AllowStop, err = allowedKinds(in.AllowStop); err != nil {
		return Prepared{}, err
	}
	known := lookHome(home, at)
	defer known.close()

	facts := machine.Observe(ctx, at.Sources, machine.Subject{Home: home, Program: at.Executable,
		Files: known.largestFile()})
	engine := findEngine(ctx, in, at, known)
	decided, err := decideBy(serverCan(ctx, at, known, engine.engine.ID), Capabilities(at.Sources), known.begun,
		func(can machine.Fact[profiles.Capabilities]) (decided, error) {
			return decide(ctx, in, at, home, known, facts, engine, can)
		})
	if err != nil {
		return Prepared{}, err
	}
	choice, neighbors, made := decided.choice, decided.neighbors, decided.plan
	tools := apply.Tools{UserHome: at.UserHome, Deep: in.Deep, Source: engine.source, Toolchain: engine.toolchain,
		Prebuilt: engine.prebuilt, Neighbors: neighbors.system}
	locks := map[plan.Kind]*manifests.Lock{}
	for _, part := range made.Decisions.Parts() {
		m, from := choice.manifest, &tools.Model
		locks[part.FilesKind] = choice.lock
		if part.FilesKind == plan.DraftAction {
			m, from, locks[part.FilesKind] = choice.draft.manifest, &tools.Draft, choice.draft.lock
		}
		*from = sourceOf(at, in, m, part, locks[part.FilesKind])
		from.Head = headOf(at, in, choice.manifest, part)
	}
	workers := apply.Workers(made, tools)
	world, err := look(ctx, made, workers, known, facts, choice, engine, at.UserHome)
	if err != nil {
		return Prepared{}, err
	}
	world.InPlaceFolder = choice.couldUse(placesOf(choice.manifest, at, in))
	neighbors.into(&world)
	neighbors.freePorts(ctx, &world, made.Decisions.Request)
	p := Prepared{Facts: facts, Server: decided.can, Proposal: choice.proposal, Manifest: choice.manifest, Plan: made,
		Price:      choice.price(),
		Assessment: plan.Judge(made, world), Workers: workers, Open: world.OpenDigest == made.Digest,
		StopLines: world.StopLines, Contended: world.Contended}
	p.Alternatives, p.DraftCost = alternatives(choice, facts, known, decided.can.Value), choice.draftCost()
	p.Host, p.hubProblem = hubHost(at)
	p.missing = map[plan.Kind]int64{plan.ModelAction: world.ModelMissingBytes,
		plan.DraftAction: world.Draft.MissingBytes}
	if choice.sized.Device == "cpu" && !choice.manifest.Embedded {
		p.TokensPerSecond = cpuTokensPerSecond(choice.manifest)
	}
	p.ListKnown, p.listed = true, map[plan.Kind]bool{}
	for kind, lock := range locks {
		if p.listed[kind] = lock != nil; lock == nil {
			p.ListKnown = false
			continue
		}
		p.Unproven += lock.Unproven()
	}
	for _, o := range neighbors.stopped {
		p.Stopped = append(p.Stopped, o.Sentence)
	}
	p.Recorded = known.carriedOut(made.Digest) && known.receipts == nil
	return p, nil
}

// sourceOf is where the files of a part come from.
func sourceOf(at Environment, in Input, m manifests.Manifest, part plan.Part, lock *manifests.Lock) apply.Source {
	s := apply.Source{List: &apply.FileList{Lock: lock}, Prove: prove(at, m, part),
		Download: bring(at, in, part.FilesKind), Places: placesOf(m, at, in)}
	if m.Embedded {
		s.Embedded = manifests.Pocket()
	}
	return s
}

// placesOf are folders where other tools keep a model's files.
func placesOf(m manifests.Manifest, at Environment, in Input) []string {
	return store.Sources(m.Repo, at.UserHome, at.Getenv, folders(in.ModelDir)...)
}

// decide chooses for a server with these capabilities, and makes the plan.
func decide(ctx context.Context, in Input, at Environment, home string, k known, facts machine.Facts,
	engine foundEngine, can machine.Fact[profiles.Capabilities]) (decided, error) {
	choice, err := choose(in, facts, k, can.Value)
	if err != nil {
		return decided{}, err
	}
	if err := choice.place(ctx, in, k, placesOf(choice.manifest, at, in)); err != nil {
		return decided{}, err
	}
	choice.keepConversations(in, facts)
	neighbors, err := lookNeighbors(ctx, in, at, home, k, choice, facts)
	if err != nil {
		return decided{}, err
	}
	d := plan.Decisions{Home: home, Target: runtime.GOOS + "/" + runtime.GOARCH, Request: choice.resolve(in.Request),
		Model: choice.model, Profile: choice.sized, Engine: engine.engine, Stops: neighbors.stops,
		RebootAgent: neighbors.rebootAgent}
	if choice.draft != nil {
		d.Draft = &choice.draft.files
	}
	return decided{can: can, choice: choice, neighbors: neighbors, plan: planOf(d, in, choice.result, k.journal)}, nil
}

// resolve replaces "choose for me" by what was chosen, and leaves out what has no effect.
func (c *choice) resolve(r plan.Request) plan.Request {
	r.Model, r.Profile = c.manifest.ID, c.profile.ID
	r.DiskCacheBytes = c.diskCache(r)
	if r.AllowStop == "" {
		r.AcceptLoss, r.IdleForS = false, 0
	}
	if r.IdleForS == leastIdleS {
		r.IdleForS = 0 // the same plan as without a span
	}
	return r
}

// known is the home as far as it exists.
type known struct {
	view     apply.HomeView
	home     *apply.Home // nil: not ours yet
	settings *apply.Settings
	journal  string // digest of an open plan
	damage   error  // of the journal
	receipts error  // *apply.ReceiptError of a damaged receipt; nil: none
	models   []manifests.Manifest
}

// manifest finds a model by its id.
func (k known) manifest(id string) (manifests.Manifest, bool) {
	at := slices.IndexFunc(k.manifests(), func(m manifests.Manifest) bool { return m.ID == id })
	if at < 0 {
		return manifests.Manifest{}, false
	}
	return k.manifests()[at], true
}

func (k known) manifests() []manifests.Manifest {
	if k.models == nil {
		return manifests.All()
	}
	return k.models
}

func lookHome(path string, at Environment) known {
	k := known{view: apply.LookHome(path, at.UserHome), models: at.Manifests}
	home, err := apply.OpenHome(path, at.UserHome)
	if err != nil {
		return k
	}
	k.home = home
	if s, err := apply.ReadSettings(home); err == nil {
		k.settings = &s
	}
	k.journal, k.damage = apply.OpenDigest(home)
	if _, err := home.Receipts(); errors.As(err, new(*apply.ReceiptError)) {
		k.receipts = err
	}
	return k
}

// begun reports whether the plan of a digest is open here or was carried out.
func (k known) begun(digest string) bool {
	return digest == k.journal || k.journal == "" && k.carriedOut(digest)
}

// carriedOut reports whether a receipt says that the plan of a digest was carried out to its end.
func (k known) carriedOut(digest string) bool {
	if k.home == nil {
		return false
	}
	receipt, err := k.home.Receipt(digest)
	return err == nil && receipt.Complete
}

func (k known) close() {
	if k.home != nil {
		k.home.Close()
	}
}

// largestFile is the largest file of the model that is set up: whether it can be read at all is a fact of the machine
// (macOS denies folders to programs whatever the file's mode).
func (k known) largestFile() []string {
	if k.home == nil || k.settings == nil {
		return nil
	}
	m := k.settings.Decisions.Model
	lock, err := store.LoadLock(k.home.Root, m.Repo, m.Revision)
	if err != nil || len(lock.Files) == 0 {
		return nil
	}
	largest := slices.MaxFunc(lock.Files, func(a, b manifests.File) int { return cmp.Compare(a.Size, b.Size) })
	folder := filepath.Join(k.home.Path, filepath.FromSlash(m.Folder))
	if m.InPlace != "" {
		folder = m.InPlace
	}
	return []string{filepath.Join(folder, filepath.FromSlash(largest.Path))}
}

func (k known) root() *os.Root {
	if k.home == nil {
		return nil
	}
	return k.home.Root
}

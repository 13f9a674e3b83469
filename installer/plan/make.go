package plan

import (
	"fmt"
	"path"
	"strings"

	"slipway/profiles"
	"slipway/units"
)

// Folders are the fixed folders of a home.
var Folders = []string{"models", "engines", "run", "state", "logs"}

// Paths below the home that several packages name.
const (
	MarkerPath   = ".slipway-home"
	SettingsPath = "state/settings.json"
	ServerLog    = "logs/server.log"
	EngineBinary = "slipway-server"
	CachePath    = "cache" // of restore points; the server makes it
)

// EnginePath is the server program of an engine, below the home.
func EnginePath(id string) string { return path.Join("engines", id, EngineBinary) }

// Make derives the actions and the digest. It is total: decisions that cannot be carried out still give a plan, and
// Judge names what is in the way.
func Make(d Decisions) Plan {
	p := Plan{SchemaVersion: SchemaVersion, Decisions: d}
	for _, part := range d.Parts() {
		if part.NeedsList() {
			p.Actions = append(p.Actions, listAction(part))
		}
	}
	p.Actions = append(p.Actions, homeAction(d))
	for _, part := range d.Parts() {
		p.Actions = append(p.Actions, filesAction(part))
	}
	p.Actions = append(p.Actions, engineAction(d), settingsAction(d))
	if len(d.Stops) > 0 {
		p.Actions = append(p.Actions, stopsAction(d))
	}
	if d.Request.Launch {
		p.Actions = append(p.Actions, launchAction(d))
	}
	p.Digest = DigestOf(p)
	return p
}

// listBytes is about what the git objects of one revision of a model have: its small files, and pointers to the others.
const listBytes = 32 << 20

// listAction gets and proves the file list. It runs before the home is made, so that nothing is changed where the hub
// cannot be reached, and needs no consent but that to download.
func listAction(m Part) Action {
	a := Action{
		ID: string(m.ListKind), Kind: m.ListKind, Consent: []Class{Download},
		Sentence: fmt.Sprintf("Get the file list of %s at %s from huggingface.co, or the mirror in HF_ENDPOINT, and "+
			"prove it from the revision's 40 digits; more than %s is refused.",
			m.Repo, m.Revision.Short(), units.Short(m.CeilingBytes)),
		Touches: Touches{Paths: []string{path.Dir(m.Folder), m.Folder + ".lock.json"}, Bytes: 1 << 20,
			DownloadBytes: listBytes, Ports: []int{}, Processes: []string{}},
		Precondition: "the list is not known, or known with hashes that are proven",
		Undo:         "remove the list",
	}
	return withUnproven(a, m.Model)
}

func homeAction(d Decisions) Action {
	return Action{
		ID: "home", Kind: HomeAction, Consent: []Class{Write},
		Sentence: fmt.Sprintf("Make the folder %s, and in it models, engines, run, state and logs.", d.Home),
		Touches: Touches{Paths: append([]string{".", MarkerPath}, Folders...), Ports: []int{},
			Processes: []string{}},
		Precondition: "the home is not there, is empty, or carries our marker",
		Undo:         "remove the folders that are empty, the marker, and the home if it was made here",
	}
}

// filesAction brings the files of the model or of its draft.
func filesAction(m Part) Action {
	a := Action{
		ID: string(m.FilesKind), Kind: m.FilesKind, Consent: []Class{Write},
		Touches: Touches{Paths: []string{m.Folder}, Bytes: m.Bytes, DownloadBytes: m.DownloadBytes,
			Ports: []int{}, Processes: []string{}},
		Precondition: "each file is absent, unfinished, or whole with the hash of the lock",
		Undo:         "remove the files whose hash is still that of the receipt",
	}
	if m.Embedded {
		a.Sentence = fmt.Sprintf("Write %s (%d files, %s, %s) from this program to %s; no network is used.",
			m.Title, m.Files, units.Short(m.Bytes), m.License, m.Folder)
		return a
	}
	if m.InPlace != "" {
		a.Sentence = fmt.Sprintf("Check every hash of %s (%s at %s, about %s, licence %s) in %s and use it in "+
			"place: nothing is downloaded or copied, the folder is only read, and it must stay as it is.",
			m.Title, m.Repo, m.Revision.Short(), units.Short(m.Bytes), m.License, m.InPlace)
		a.Touches.Paths = []string{path.Dir(m.Folder)}
		a.Touches.Bytes, a.Touches.DownloadBytes = 1<<20, 0
		a.Precondition, a.Undo = "every file is there with the hash of the lock", "forget the folder; what is "+
			"in it stays"
		return withUnproven(a, m.Model)
	}
	a.Consent = []Class{Download, Write}
	if m.Tensors != "" {
		a.Sentence = fmt.Sprintf("Download %s by byte range (tensors %s* of %s at %s, about %s, licence %s) and "+
			"write it in 4 bit, %s, to %s.", m.Title, m.Tensors, m.Repo, m.Revision.Short(),
			units.Short(m.DownloadBytes), m.License, units.Short(m.Bytes), m.Folder)
		a.Touches.Paths = append(a.Touches.Paths, m.Folder+".lock.json")
		return withUnproven(a, m.Model)
	}
	a.Sentence = fmt.Sprintf("Download %s (%s at %s, about %s, licence %s) to %s and check every hash; what other "+
		"tools have on this machine is copied instead.",
		m.Title, m.Repo, m.Revision.Short(), units.Short(m.Bytes), m.License, m.Folder)
	return withUnproven(a, m.Model)
}

// withUnproven adds the consent that files without a proof need.
func withUnproven(a Action, m Model) Action {
	if m.MayBeUnproven() {
		a.Consent = append(a.Consent, Unproven)
		a.Sentence += " A file without a proof is checked by the hash that the hub names."
	}
	return a
}

func engineAction(d Decisions) Action {
	e := d.Engine
	folder := path.Join("engines", e.ID)
	a := Action{
		ID: "engine", Kind: EngineAction, Consent: []Class{Build, Write},
		Touches: Touches{Paths: []string{folder, EnginePath(e.ID)}, Bytes: 32 << 20, Ports: []int{},
			Processes: []string{"go build"}},
		Precondition: "the folder is absent, or holds the program with the hash that its record names",
		Undo:         "remove the program whose hash is still that of the receipt",
	}
	switch e.Origin {
	case Prebuilt:
		a.Consent = []Class{Write}
		a.Touches.Processes = []string{}
		a.Sentence = fmt.Sprintf("Copy the prebuilt slipway-server (%s) to %s.", short(string(e.Prebuilt)), folder)
	default:
		a.Sentence = fmt.Sprintf("Build slipway-server from source %s with %s to %s; go may fetch the modules "+
			"pinned in go.sum and uses its own caches.",
			short(string(e.Source)), orWords(e.GoVersion, "Go"), folder)
	}
	return a
}

func settingsAction(d Decisions) Action {
	a := Action{
		ID: "settings", Kind: SettingsAction, Consent: []Class{Write},
		Sentence: fmt.Sprintf("Keep the settings: model %s, profile %s, window %s tokens, KV %s, port %d.",
			d.Model.ID, d.Profile.Name, units.Count(d.Profile.WindowTokens), formatWords(d.Profile.KVFormat),
			d.Request.Port),
		Touches:      Touches{Paths: []string{SettingsPath}, Bytes: 4096, Ports: []int{}, Processes: []string{}},
		Precondition: "the file is absent or written by slipway",
		Undo:         "remove the file",
	}
	if name := NormalizePath(d.Request.Normalize); name != "" {
		a.Sentence += fmt.Sprintf(" Keep a copy of the normalize rules in %s.", name)
		a.Touches.Paths = append(a.Touches.Paths, name)
	}
	if d.Request.AllowOrigins != "" {
		a.Sentence += fmt.Sprintf(" Make a random key in %s, for you alone (mode 0600), unless it is there.",
			OriginKeyPath)
		a.Touches.Paths = append(a.Touches.Paths, OriginKeyPath)
	}
	return a
}

func launchAction(d Decisions) Action {
	a := Action{
		ID: "launch", Kind: LaunchAction, Consent: []Class{Launch},
		Sentence: fmt.Sprintf("Start our server on 127.0.0.1:%d, its monitor on port %d, with %s (a server of ours "+
			"with other settings is replaced); it keeps running in the background.",
			d.Request.Port, d.Request.MonitorPort, d.Model.ID),
		Touches: Touches{Paths: []string{"run", ServerLog}, Ports: []int{d.Request.Port, d.Request.MonitorPort},
			Processes: []string{"slipway-server"}},

		Precondition: "the ports are free or held by our own server",
		Undo:         "stop the server: slipway down",
	}
	switch p := d.Profile; {
	case p.CacheDiskBytes > 0:
		a.Sentence += fmt.Sprintf(" To resume conversations, also after a restart, it keeps restore points: up to "+
			"%s in memory and up to %s on disk in %s, of which at most %s are written in a day. Your prompts and "+
			"replies can be read from these files: they are for you alone (mode 0600), stay out of backups, and "+
			"slipway cache clear deletes them; --disk-cache off writes none.",
			units.GiB(p.CacheMemoryBytes), units.Short(p.CacheDiskBytes), CachePath,
			units.Short(p.CacheDiskDailyBytes))
		a.Touches.Paths = append(a.Touches.Paths, CachePath)
	case p.CacheMemoryBytes > 0:
		a.Sentence += fmt.Sprintf(" To resume conversations until it stops, it keeps restore points: up to %s in "+
			"memory, none on disk.", units.GiB(p.CacheMemoryBytes))
	}
	for _, words := range CallersWords(d.Request) {
		a.Sentence += " " + words
	}
	return a
}

// CallersWords say who may ask beside the programs of this machine: a sentence for the hosts and one for the origins,
// where there are any.
func CallersWords(r Request) (sentences []string) {
	if hosts := r.AllowHosts.List(); hosts != nil {
		sentences = append(sentences, fmt.Sprintf("Clients may call the server by the name %s (off: --allow-host %s).",
			strings.Join(hosts, " or "), NoCallers))
	}
	if origins := r.AllowOrigins.List(); origins != nil {
		sentences = append(sentences, fmt.Sprintf("Pages and programs of %s may ask the model, with the key in %s "+
			"(off: --allow-origin %s).", strings.Join(origins, " and "), OriginKeyPath, NoCallers))
	}
	return sentences
}

// formatWords names a format, and that it changes results where it does.
func formatWords(kv string) string {
	if profiles.KVFormat(kv).Approximate() {
		return kv + " (less exact than 16 bit)"
	}
	return kv
}

func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19]
	}
	return orWords(digest, "unknown")
}

func orWords(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

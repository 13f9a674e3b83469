package apply

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"slipway/installer/launch"
	"slipway/installer/plan"
	"slipway/installer/store"
)

type launchWorker struct {
	decisions plan.Decisions
	userHome  string
}

// ServerSettings is what our server is started with under these decisions. The engine must be there; a model that is
// used in place must be what it was when it was hashed, else it is a *store.MovedError.
func ServerSettings(home *Home, d plan.Decisions) (launch.Settings, error) {
	engine, err := EngineOf(home, d.Engine.ID)
	if err != nil {
		return launch.Settings{}, err
	}
	folder, err := ModelFolder(home, d.Model)
	if err != nil {
		return launch.Settings{}, err
	}
	set := launch.Settings{
		Program: plan.EnginePath(d.Engine.ID), ProgramSHA256: string(engine.SHA256),
		ModelFolder: folder, ModelID: d.Model.ID, Revision: string(d.Model.Revision),
		Device: serverDevice(d), Host: "127.0.0.1", Port: d.Request.Port, MonitorPort: d.Request.MonitorPort,
		WindowTokens: d.Profile.WindowTokens, Parallel: d.Profile.Parallel,
		KVFormat: d.Profile.KVFormat, PrefillPolicy: d.Profile.PrefillPolicy, Draft: d.Profile.Draft,
		BudgetBytes: d.Profile.BudgetBytes, ModelBytes: loadedBytes(d),
		DraftFolder: draftFolder(d),
		Profile:     d.Profile.Name, CacheMemoryBytes: d.Profile.CacheMemoryBytes,
		NormalizeFile: plan.NormalizePath(d.Request.Normalize),
	}
	if d.Profile.CacheDiskBytes > 0 {
		set.CacheDisk, set.CacheDiskBytes, set.CacheDiskDailyBytes = plan.CachePath, d.Profile.CacheDiskBytes,
			d.Profile.CacheDiskDailyBytes
	}
	set.AllowHosts, set.AllowOrigins = string(d.Request.AllowHosts), string(d.Request.AllowOrigins)
	if set.AllowOrigins != "" {
		set.OriginKey = plan.OriginKeyPath
		set.OriginKeySHA256 = originKeySHA256(home)
	}
	return set, nil
}

// draftFolder is where a server reads a draft of a repository of its own, below the home; empty: there is none.
func draftFolder(d plan.Decisions) string {
	if d.Draft == nil {
		return ""
	}
	return d.Draft.Folder
}

// loadedBytes is how much a server reads before it is ready.
func loadedBytes(d plan.Decisions) (bytes int64) {
	for _, part := range d.Parts() {
		bytes += part.Bytes
	}
	return bytes
}

// ModelFolder is where a server reads the model: below the home, or absolute where it is used in place, with every
// identity looked at again.
func ModelFolder(home *Home, m plan.Model) (string, error) {
	if m.InPlace == "" {
		return m.Folder, nil
	}
	lock, err := store.LoadLock(home.Root, m.Repo, m.Revision)
	if err != nil {
		return "", fmt.Errorf("the lock of %s: %w", m.ID, err)
	}
	return store.Referred(home.Root, lock)
}

// mostOnCPU is the largest model, in bytes, that the server's --device auto gives to the CPU where Metal is refused.
const mostOnCPU = 4 << 30

// serverDevice leaves the way to the CPU open for a model that is small enough for it.
func serverDevice(d plan.Decisions) string {
	if d.Profile.Device == "metal" && d.Model.Bytes <= mostOnCPU {
		return "auto"
	}
	return d.Profile.Device
}

func (w launchWorker) Check(ctx context.Context, home *Home) (Condition, error) {
	if home != nil {
		status, err := launch.Look(ctx, home.Root, home.Path)
		if err != nil {
			return Condition{}, err
		}
		if status.Living() {
			want, err := ServerSettings(home, w.decisions)
			same := err == nil && status.Serves(home.Path, want)
			if same || status.Record.Settings.Port == w.decisions.Request.Port {
				return Condition{Done: same && status.State == launch.Running && status.Recorded()}, nil
			}
		}
	}
	api, monitor := w.decisions.Request.Port, w.decisions.Request.MonitorPort
	if use := launch.LookPort(ctx, api); use.Taken && !w.willBeFree(ctx, api, use) {
		return Condition{}, &launch.PortError{Port: api, Use: use}
	}
	if use := launch.LookMonitorPort(ctx, monitor); use.Taken && !w.willBeFree(ctx, monitor, use) {
		return Condition{}, &launch.PortError{Port: monitor, Use: use, Monitor: true}
	}
	return Condition{}, nil
}

// willBeFree reports whether an earlier action stops the owner of a port, or the owner is our own server.
func (w launchWorker) willBeFree(ctx context.Context, port int, use launch.PortUse) bool {
	return w.decisions.StopsHolderOf(port, use.PID) || OurServerHolds(ctx, w.decisions.Home, w.userHome, port)
}

// OurServerHolds looks once more whether it is a server of this home that has a port: another run may have made the
// home and started the server since the first look, and then the lock decides between the two, not the port.
func OurServerHolds(ctx context.Context, homePath, userHome string, port int) bool {
	home, err := OpenHome(homePath, userHome)
	if err != nil {
		return false
	}
	defer home.Close()
	status, err := launch.Look(ctx, home.Root, home.Path)
	settings := status.Record.Settings
	return err == nil && status.Living() && (settings.Port == port || settings.MonitorPort == port)
}

func (w launchWorker) Do(ctx context.Context, home *Home, report func(Event)) (Outcome, error) {
	want, err := ServerSettings(home, w.decisions)
	if err != nil {
		return Outcome{}, err
	}
	notes, err := provenMetal(ctx, home, want, report)
	if err != nil {
		return Outcome{}, err
	}
	// While one server of ours replaces another nobody holds the neighbours but this process.
	if err := holdNeighbors(home.Path); err != nil {
		return Outcome{}, err
	}
	if status, err := launch.Look(ctx, home.Root, home.Path); err == nil && status.State == launch.Hung {
		report(Event{Kind: "note", Action: "launch",
			Text: fmt.Sprintf("Our server (pid %d) runs and does not answer. It has %s to answer, then %s to end; "+
				"after that it is killed, which loses nothing, and replaced.",
				status.Record.Process.PID, launch.HungLimit, launch.StopLimit)})
	}
	if err := writeLaunch(home, w.decisions); err != nil {
		return Outcome{}, err
	}
	report(Event{Kind: "waiting", Action: "launch", Text: "Loading the model", Usual: loadWords(want)})
	started, err := launch.Start(ctx, home.Root, home.Path, want, false)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Items: []Item{{Kind: ProcessItem, Path: want.Program, PID: started.Process.PID}}, Notes: notes}
	if want.CacheDisk != "" {
		out.Items = append(out.Items, Item{Kind: FolderItem, Path: want.CacheDisk})
	}
	return out, nil
}

// loadWords says how long a model loads: the first time its bytes are read from the disk, at 1 to 5 GB/s on a Mac.
func loadWords(want launch.Settings) string {
	if want.ModelBytes < 1e9 {
		return ""
	}
	return fmt.Sprintf("up to %d s", max(5, want.ModelBytes/1e9))
}

// Notes of a launch on Metal.
const (
	selfTestNote = "selftest"          // how it went
	testedNote   = "selftest_of"       // build of the system and digest of the server that it is about
	degradedNote = "selftest_degraded" // kernels that gave way to plain ones
)

// provenMetal has the server test its kernels on this machine's GPU, once for each build of macOS and each server: a
// receipt that knows the result saves the run. The notes are for the receipt; nil where the CPU answers. A GPU that
// fails is an *launch.UnfitError, unless the server may go to the CPU by itself.
func provenMetal(ctx context.Context, home *Home, want launch.Settings,
	report func(Event)) (map[string]string, error) {
	if want.Device == "cpu" {
		return nil, nil
	}
	of := launch.SystemBuild() + " " + want.ProgramSHA256
	receipts, err := home.Receipts()
	if err != nil {
		return nil, err
	}
	for _, r := range receipts {
		for _, done := range r.Actions {
			if done.Notes[testedNote] == of {
				return done.Notes, nil
			}
		}
	}
	report(Event{Kind: "waiting", Action: "launch", Text: "Testing the GPU", Usual: "up to 1 min, once"})
	result, err := launch.RunSelfTest(ctx, filepath.Join(home.Path, filepath.FromSlash(want.Program)))
	if err != nil && (want.Device != "auto" || result.Refusal == "") {
		return nil, err
	}
	notes := map[string]string{selfTestNote: launch.SelfTestSentence(result), testedNote: of}
	if len(result.Degraded) > 0 {
		notes[degradedNote] = strings.Join(result.Degraded, "; ")
	}
	return notes, nil
}

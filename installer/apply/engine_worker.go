package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"slipway/atomicfile"
	"slipway/fault"
	"slipway/installer/build"
	"slipway/installer/plan"
	"slipway/manifests"
)

// EngineRecord is beside the server program: what it is and how it was made. Folder and record appear together, by
// one rename, after everything in them is on disk.
type EngineRecord struct {
	ID        string           `json:"id"`
	Origin    string           `json:"origin"`
	SHA256    manifests.Digest `json:"sha256"`
	Bytes     int64            `json:"bytes"`
	Source    manifests.Digest `json:"source,omitempty"`
	GoVersion string           `json:"go_version,omitempty"`
	Target    string           `json:"target"`
}

const engineRecordName = "engine.json"

// PrebuiltError: the prebuilt program is not the one that this installer was compiled to trust.
type PrebuiltError struct {
	Path        string
	Want, Found manifests.Digest
}

func (e *PrebuiltError) Error() string {
	return fmt.Sprintf("%s has %s, and this slipway trusts only %s", e.Path, e.Found, e.Want)
}

// Fault: see package fault.
func (e *PrebuiltError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.FetchRelease}
}

type engineWorker struct {
	decisions plan.Decisions
	tools     Tools
}

func (w engineWorker) folder() string { return path.Join("engines", w.decisions.Engine.ID) }

func (w engineWorker) Check(_ context.Context, home *Home) (Condition, error) {
	if home == nil || w.decisions.Engine.ID == "" {
		return Condition{}, nil
	}
	if _, err := EngineOf(home, w.decisions.Engine.ID); err != nil {
		info, statErr := home.Root.Lstat(w.folder())
		if statErr == nil && !info.IsDir() {
			return Condition{Conflict: w.folder() + " is not a folder, and an engine must be there"}, nil
		}
		return Condition{}, nil
	}
	return Condition{Done: true}, nil
}

// EngineOf reads the record of an engine and checks the program's hash against it.
func EngineOf(home *Home, id string) (EngineRecord, error) {
	folder := path.Join("engines", id)
	data, err := home.Root.ReadFile(path.Join(folder, engineRecordName))
	if err != nil {
		return EngineRecord{}, err
	}
	var r EngineRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return EngineRecord{}, err
	}
	found, n, err := hashIn(home.Root, path.Join(folder, plan.EngineBinary))
	if err != nil {
		return EngineRecord{}, err
	}
	if r.ID != id || found != r.SHA256 || n != r.Bytes {
		return EngineRecord{}, fmt.Errorf("%s is not the program that its record names: %w",
			path.Join(folder, plan.EngineBinary), fs.ErrInvalid)
	}
	return r, nil
}

func (w engineWorker) Do(ctx context.Context, home *Home, report func(Event)) (Outcome, error) {
	r, err := EngineOf(home, w.decisions.Engine.ID)
	if err != nil {
		if r, err = w.make(ctx, home, report); err != nil {
			return Outcome{}, err
		}
	}
	record, n, err := hashIn(home.Root, path.Join(w.folder(), engineRecordName))
	if err != nil {
		return Outcome{}, err
	}
	notes := map[string]string{"sha256": string(r.SHA256), "origin": r.Origin}
	if r.GoVersion != "" {
		notes["go"], notes["source"] = r.GoVersion, string(r.Source)
	}
	return Outcome{Notes: notes, Items: []Item{
		{Kind: FolderItem, Path: w.folder()},
		{Kind: FileItem, Path: path.Join(w.folder(), plan.EngineBinary), SHA256: string(r.SHA256), Bytes: r.Bytes},
		{Kind: FileItem, Path: path.Join(w.folder(), engineRecordName), SHA256: string(record), Bytes: n},
	}}, nil
}

// make gets the program from the source or from beside the installer and installs it.
func (w engineWorker) make(ctx context.Context, home *Home, report func(Event)) (EngineRecord, error) {
	e := w.decisions.Engine
	r := EngineRecord{ID: e.ID, Origin: e.Origin, Source: e.Source, GoVersion: e.GoVersion, Target: w.decisions.Target}
	if e.Origin == plan.Prebuilt {
		return r, w.install(home, w.tools.Prebuilt, e.Prebuilt, &r)
	}
	if w.tools.Source == nil {
		return r, build.ErrNoSource
	}
	if w.tools.Toolchain == nil {
		return r, build.ErrNoGo
	}
	report(Event{Kind: "waiting", Action: "engine", Text: "Compiling the server", Usual: "up to 3 min"})
	out, err := build.Server(ctx, *w.tools.Source, *w.tools.Toolchain, w.decisions.Target)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(out.Dir)
	return r, w.install(home, out.Path, out.SHA256, &r)
}

// install copies a program to a folder beside its place, checks the hash of what was written, and renames the folder.
func (w engineWorker) install(home *Home, from string, want manifests.Digest, r *EngineRecord) error {
	partial := "engines/.partial-" + w.decisions.Engine.ID
	if err := home.Root.RemoveAll(partial); err != nil {
		return err
	}
	if err := home.Root.Mkdir(partial, 0o755); err != nil {
		return err
	}
	program := path.Join(partial, plan.EngineBinary)
	if err := copyInto(home.Root, from, program); err != nil {
		return err
	}
	found, n, err := hashIn(home.Root, program)
	if err != nil {
		return err
	}
	if found != want {
		home.Root.RemoveAll(partial)
		return &PrebuiltError{from, want, found}
	}
	r.SHA256, r.Bytes = found, n
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(home.Root, path.Join(partial, engineRecordName), append(data, '\n'),
		0o644); err != nil {
		return err
	}
	// A folder that is there and not whole (a file of it was removed or changed) is removed first.
	if err := w.clear(home); err != nil {
		return err
	}
	if err := home.Root.Rename(partial, w.folder()); err != nil {
		return err
	}
	return atomicfile.SyncFolder(home.Root, "engines")
}

func (w engineWorker) clear(home *Home) error {
	for _, name := range []string{plan.EngineBinary, engineRecordName} {
		if err := home.Root.Remove(path.Join(w.folder(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err := home.Root.Remove(w.folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &StaleError{Action: "engine", Why: w.folder() + " holds files that slipway did not put there"}
	}
	return nil
}

func copyInto(root *os.Root, from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	if closeErr := dst.Close(); err == nil {
		err = closeErr
	}
	return err
}

func hashIn(root *os.Root, name string) (manifests.Digest, int64, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is no plain file: %w", name, fs.ErrInvalid)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return manifests.DigestOf([32]byte(sum.Sum(nil))), n, err
}

package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"syscall"

	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// filesWorker brings the files of the model, or of its draft.
type filesWorker struct {
	part plan.Part
	home string // the home's path
	deep bool
	from Source
}

// Check hashes an embedded model in full (a few megabytes) and looks at the recorded identities of a large one, unless
// every byte was asked for.
func (w filesWorker) Check(ctx context.Context, home *Home) (Condition, error) {
	if w.part.InPlace != "" {
		done, err := w.inPlace(ctx, home)
		return Condition{Done: done}, err
	}
	if home == nil || w.from.List.Lock == nil {
		missing := w.part.Bytes
		if w.from.List.Lock != nil {
			missing -= w.clonable(ctx, w.from.List.Lock.Files...)
		}
		return Condition{MissingBytes: missing}, nil
	}
	report, err := w.verify(ctx, home)
	if err != nil {
		return Condition{}, err
	}
	whole := report.OK() && !w.lockDamaged(home)
	for _, f := range report.Files {
		if f.State == store.NotAFile {
			return Condition{Conflict: fmt.Sprintf("%s is no plain file (%s), and a file of the %s must be there",
				path.Join(w.part.Folder, f.Path), f.Why, w.part.What)}, nil
		}
	}
	var bad []manifests.File
	for _, f := range report.Bad() {
		bad = append(bad, manifests.File{Path: f.Path, Size: f.ExpectedBytes})
	}
	return Condition{Done: whole, MissingBytes: max(0, missingBytes(home, report)-w.clonable(ctx, bad...))}, nil
}

// lockDamaged reports whether the lock beside the model has to be written again.
func (w filesWorker) lockDamaged(home *Home) bool {
	_, err := store.LoadLock(home.Root, w.part.Repo, w.part.Revision)
	return errors.As(err, new(*store.LockFileError))
}

// clonable is how much of these files needs no room because a clone of what is on this machine will do.
func (w filesWorker) clonable(ctx context.Context, files ...manifests.File) int64 {
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	if len(names) == 0 || w.part.Embedded {
		return 0
	}
	return store.ClonableBytes(ctx, w.home, *w.from.List.Lock, names, w.from.Places)
}

// inPlace reports whether the folder that is to be used is recorded and as it was when it was hashed.
func (w filesWorker) inPlace(ctx context.Context, home *Home) (bool, error) {
	if home == nil || w.from.List.Lock == nil {
		return false, nil
	}
	folder, err := store.Referred(home.Root, *w.from.List.Lock)
	if err != nil || folder != w.part.InPlace || !w.deep {
		return err == nil && folder == w.part.InPlace, nil
	}
	report, err := store.VerifyInPlace(ctx, home.Root, *w.from.List.Lock, true)
	return err == nil && report.OK(), err
}

// refer records the folder after hashing every file in it.
func (w filesWorker) refer(ctx context.Context, home *Home, report func(Event)) (Outcome, error) {
	lock, folder := *w.from.List.Lock, w.part.InPlace
	done, err := w.inPlace(ctx, home)
	if err != nil {
		return Outcome{}, err
	}
	if !done {
		hashed := map[string]int64{}
		err := store.Refer(ctx, home.Root, lock, folder, func(name string, n int) {
			hashed[name] += int64(n)
			f, _ := lock.File(name)
			report(Event{Kind: "progress", Action: string(w.part.FilesKind), Path: name, DoneBytes: hashed[name],
				AllBytes: f.Size})
		})
		if err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Notes: map[string]string{"lock": digestOf(lock), "in_place": folder},
			Items: []Item{
				{Kind: FolderItem, Path: path.Dir(w.part.Folder)},
				{Kind: FileItem, Path: store.ReferencePath(lock)}}},
		nil
}

// missingBytes is what the files that are not whole still need, less what their unfinished forms hold already.
func missingBytes(home *Home, report store.Report) int64 {
	var missing int64
	for _, f := range report.Bad() {
		missing += f.ExpectedBytes
		info, err := home.Root.Lstat(path.Join(store.ModelsDir, ".partial", f.Expected.Hex()+".part"))
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			missing -= min(f.ExpectedBytes, st.Blocks*512) // st_blocks counts 512 bytes everywhere
		}
	}
	return missing
}

func (w filesWorker) verify(ctx context.Context, home *Home) (store.Report, error) {
	return store.Verify(ctx, home.Root, *w.from.List.Lock, w.part.Embedded || w.deep)
}

func (w filesWorker) Do(ctx context.Context, home *Home, report func(Event)) (Outcome, error) {
	if w.from.List.Lock == nil {
		panic("apply: the list action runs before that of the files")
	}
	if w.part.InPlace != "" {
		return w.refer(ctx, home, report)
	}
	lock := *w.from.List.Lock
	found, err := w.verify(ctx, home)
	if err != nil {
		return Outcome{}, err
	}
	if !found.OK() {
		if err := w.bring(ctx, home, lock, found, report); err != nil {
			return Outcome{}, err
		}
	}
	if w.lockDamaged(home) {
		if err := store.SaveLock(home.Root, lock); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Items: modelItems(lock, w.part.Folder),
		Notes: map[string]string{"lock": digestOf(lock)}}, nil
}

func (w filesWorker) bring(ctx context.Context, home *Home, lock manifests.Lock, found store.Report,
	report func(Event)) error {
	if err := w.clear(home, found); err != nil {
		return err
	}
	if !w.part.Embedded {
		return w.from.Download(ctx, home.Root, lock, report)
	}
	for _, f := range found.Bad() {
		if err := w.install(ctx, home, lock, f.Path); err != nil {
			return err
		}
		report(Event{Kind: "progress", Action: string(w.part.FilesKind), Path: f.Path, DoneBytes: f.ExpectedBytes,
			AllBytes: f.ExpectedBytes})
	}
	return nil
}

// clear removes files with a wrong hash: the fast check believes the recorded identity of such a file, and installing
// asks it, so that the name must be free.
func (w filesWorker) clear(home *Home, found store.Report) error {
	for _, f := range found.Bad() {
		if f.State != store.WrongHash {
			continue
		}
		if err := home.Root.Remove(path.Join(w.part.Folder, f.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (w filesWorker) install(ctx context.Context, home *Home, lock manifests.Lock, name string) error {
	src, err := w.from.Embedded.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	return store.Install(ctx, home.Root, lock, name, io.Reader(src))
}

func modelItems(lock manifests.Lock, folder string) []Item {
	items := []Item{{Kind: FolderItem, Path: path.Dir(folder)}, {Kind: FolderItem, Path: folder}}
	seen := map[string]bool{}
	for _, f := range lock.Files {
		for dir := path.Dir(f.Path); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			items = append(items, Item{Kind: FolderItem, Path: path.Join(folder, dir)})
		}
		items = append(items, Item{Kind: FileItem, Path: path.Join(folder, f.Path), SHA256: string(f.SHA256),
			Bytes: f.Size})
	}
	return items
}

// LockDamage is the *store.LockFileError of the first lock that cannot be used, of the model and its draft; nil: none.
func LockDamage(home *Home, d plan.Decisions) error {
	for _, part := range d.Parts() {
		if _, err := store.LoadLock(home.Root, part.Repo, part.Revision); errors.As(err, new(*store.LockFileError)) {
			return err
		}
	}
	return nil
}

package operate

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/store"
	"slipway/manifests"
)

// ModelsAnswer is the answer of Models.
type ModelsAnswer struct {
	Models []installer.ModelRow `json:"models"`
}

// Models lists the known models, whether they fit this machine, and whether they can be installed.
func (o *Operator) Models(ctx context.Context) (ModelsAnswer, error) {
	rows, err := installer.Models(ctx, o.Home, o.Environment)
	return ModelsAnswer{rows}, err
}

// LockAnswer is the answer of LockModel.
type LockAnswer struct {
	Model    string             `json:"model"`
	Repo     string             `json:"repo"`
	Revision manifests.Revision `json:"revision"`
	File     string             `json:"file"` // below the home
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"`
	Proven   int                `json:"proven"` // files whose hash follows from the revision
	Unproven int                `json:"told"`   // unproven files: only the hub vouches for them
	Sentence string             `json:"sentence"`
}

// LockModelInput is the input of LockModel.
type LockModelInput struct {
	Model          string `json:"model"`
	AcceptUnproven bool   `json:"accept_told"` // take the hub's word where there is no proof
	Replace        bool   `json:"replace"`     // in place of a lock in the home that says otherwise
}

// LockModel derives every hash of a model from its revision, and keeps the lock in the home.
func (o *Operator) LockModel(ctx context.Context, in LockModelInput) (LockAnswer, error) {
	if in.Model == "" {
		return LockAnswer{}, wrong("models lock needs --model; slipway models list names them")
	}
	lock := installer.LockInput{Home: o.Home, Model: in.Model, AcceptUnproven: in.AcceptUnproven, Replace: in.Replace,
		Say: o.Caller.Say}
	var locked installer.Locked
	err := o.during("Getting and proving the file list", func() (err error) {
		locked, err = installer.LockModel(ctx, lock, o.Environment)
		return err
	})
	if err != nil {
		return LockAnswer{}, err
	}
	unproven := locked.Lock.Unproven()
	return LockAnswer{Model: in.Model, Repo: locked.Lock.Repo, Revision: locked.Lock.Revision, File: locked.Path,
		Files: len(locked.Lock.Files), Bytes: locked.Lock.TotalBytes(), Proven: len(locked.Lock.Files) - unproven,
		Unproven: unproven,
		Sentence: locked.Sentence}, nil
}

// BundleAnswer is the answer of ExportBundle and ImportBundle.
type BundleAnswer struct {
	Repo     string             `json:"repo"`
	Revision manifests.Revision `json:"revision"`
	File     string             `json:"file"` // the bundle
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"` // of the model
	Unproven int                `json:"told"`  // unproven files: their hashes do not follow from the revision
}

func bundled(lock manifests.Lock, file string) BundleAnswer {
	return BundleAnswer{Repo: lock.Repo, Revision: lock.Revision, File: file, Files: len(lock.Files),
		Bytes: lock.TotalBytes(), Unproven: lock.Unproven()}
}

// ExportInput is the input of ExportBundle.
type ExportInput struct {
	File string `json:"out"` // to write; it must not exist
}

// ExportBundle writes the installed model into one new file.
func (o *Operator) ExportBundle(ctx context.Context, in ExportInput) (a BundleAnswer, err error) {
	file := in.File
	if file == "" {
		return a, wrong("bundle export needs --out FILE")
	}
	err = o.inHome(func(home *apply.Home) error {
		set, err := apply.ReadSettings(home)
		if err != nil {
			return ErrNotSetUp
		}
		lock, err := knownLock(home, set.Decisions.Model.Repo, set.Decisions.Model.Revision)
		if err != nil {
			return err
		}
		out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return &Error{Text: file + " is there already.", Of: fault.Fault{Class: fault.Stale, Step: fault.OtherFile}}
		}
		if err != nil {
			return err
		}
		if err := errors.Join(o.during("Writing the bundle", func() error {
			return store.Export(ctx, home.Root, lock, out)
		}), out.Sync(), out.Close()); err != nil {
			os.Remove(file) // ours: made a moment ago, and of no use
			return err
		}
		a = bundled(lock, file)
		return nil
	})
	return a, err
}

// ImportInput is the input of ImportBundle.
type ImportInput struct {
	File string `json:"in"` // the bundle
	// AcceptUnproven takes the bundle's word for the hashes where no lock of the model is known.
	AcceptUnproven bool `json:"accept_told"`
}

// ImportBundle installs a model from a bundle; no network is used.
func (o *Operator) ImportBundle(ctx context.Context, in ImportInput) (BundleAnswer, error) {
	if in.File == "" {
		return BundleAnswer{}, wrong("bundle import needs --in FILE")
	}
	bundle, err := os.OpenFile(in.File, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for its writer
	if err != nil {
		return BundleAnswer{}, &Error{Text: err.Error(), Of: fault.Fault{Class: fault.Usage, Step: fault.NameBundle}}
	}
	defer bundle.Close()
	if info, err := bundle.Stat(); err != nil || !info.Mode().IsRegular() {
		return BundleAnswer{}, &NotAFileError{in.File}
	}
	lock, err := store.ReadBundleLock(bundle)
	if err != nil {
		return BundleAnswer{}, OfBundle(err)
	}
	path, err := o.resolve()
	if err != nil {
		return BundleAnswer{}, err
	}
	home, err := apply.MakeHome(path, o.Environment.UserHome)
	if err != nil {
		return BundleAnswer{}, err
	}
	defer home.Close()
	err = o.locked(home, func() error {
		return o.during("Reading the bundle", func() (err error) {
			lock, err = importInto(ctx, home, bundle, lock, in.AcceptUnproven)
			return err
		})
	})
	if err != nil {
		return BundleAnswer{}, err
	}
	return bundled(lock, in.File), nil
}

func importInto(ctx context.Context, home *apply.Home, in *os.File, lock manifests.Lock,
	acceptUnproven bool) (manifests.Lock, error) {
	var expected *manifests.Lock
	if known, err := knownLock(home, lock.Repo, lock.Revision); err == nil {
		expected = &known
	} else if !acceptUnproven {
		return lock, &UnknownLockError{lock.Repo, lock.Revision}
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return lock, err
	}
	installed, err := store.Import(ctx, home.Root, in, expected)
	if err != nil {
		return lock, OfBundle(err)
	}
	return installed, nil
}

// NotAFileError says that a bundle is no plain file: it is read twice.
type NotAFileError struct{ File string }

func (e *NotAFileError) Error() string {
	return e.File + " is no plain file, and a bundle is read twice"
}

// Fault: see package fault.
func (e *NotAFileError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Usage, Step: fault.NameBundle}
}

// UnknownLockError says that no lock of a model is known: only the bundle vouches for its bytes.
type UnknownLockError struct {
	Repo     string
	Revision manifests.Revision
}

func (e *UnknownLockError) Error() string {
	return "No lock of " + e.Repo + " at " + string(e.Revision) + " is known here: nothing but the bundle " +
		"names its hashes."
}

// Fault: see package fault.
func (e *UnknownLockError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Consent, Step: fault.LockOrAccept}
}

// OfBundle gives an import's errors their own next step: the bundle is the suspect, and the same command on it cannot
// help.
func OfBundle(err error) error {
	switch {
	case errors.As(err, new(*store.BundleError)), errors.As(err, new(*store.IntegrityError)):
		return &Error{Text: err.Error(), Of: fault.Fault{Class: fault.Integrity, Step: fault.CopyBundle}}
	case errors.As(err, new(*store.LockConflictError)):
		return &Error{Text: err.Error(), Of: fault.Fault{Class: fault.Stale, Step: fault.TrustedBundle}}
	}
	return err
}

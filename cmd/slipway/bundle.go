package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/plan"
	"slipway/installer/store"
	"slipway/manifests"
)

// bundleAnswer is the data of bundle export and bundle import.
type bundleAnswer struct {
	Repo     string             `json:"repo"`
	Revision manifests.Revision `json:"revision"`
	File     string             `json:"file"` // the bundle
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"` // of the model
	Told     int                `json:"told"`  // files whose hashes do not follow from the revision
}

func bundleVerb(s *session) *cli.Command {
	return &cli.Command{Name: "bundle", Usage: "carry an installed model to a machine without a network", Subcommands: []*cli.Command{
		{
			Name: "export", Usage: "write the installed model into one file",
			Flags:  []cli.Flag{homeFlag(), &cli.StringFlag{Name: "out", Usage: "the file to write; it must not exist"}},
			Action: func(c *cli.Context) error { return bundleExport(s, c) },
		},
		{
			Name: "import", Usage: "install a model from a bundle; no network is used",
			Flags: []cli.Flag{homeFlag(), &cli.StringFlag{Name: "in", Usage: "the bundle"},
				&cli.BoolFlag{Name: "accept-told", Usage: "take the bundle's word for the hashes when no lock of this model is known"}},
			Action: func(c *cli.Context) error { return bundleImport(s, c) },
		},
	}}
}

func bundleExport(s *session, c *cli.Context) error {
	name := c.String("out")
	if name == "" {
		return usage("bundle export needs --out FILE")
	}
	home, err := s.openHome(c.String("home"))
	if err != nil {
		return err
	}
	defer home.Close()
	set, err := s.settings(c.String("home"))
	if err != nil {
		return &failure{code: exitNotReady, what: "Nothing is set up here yet.", then: "Set it up: slipway setup.", next: []string{"setup"}}
	}
	m := set.Decisions.Model
	lock, err := knownLock(home.Root, m.Repo, m.Revision)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &failure{code: exitStale, what: name + " is there already.", then: "Nothing was done. Name another file with --out."}
	}
	if err != nil {
		return err
	}
	err = errors.Join(store.Export(s.ctx, home.Root, lock, out), out.Sync(), out.Close())
	if err != nil {
		os.Remove(name) // ours: made a moment ago, and no use to anybody
		return err
	}
	return s.bundled(lock, name, "Wrote")
}

func bundleImport(s *session, c *cli.Context) error {
	name := c.String("in")
	if name == "" {
		return usage("bundle import needs --in FILE")
	}
	in, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for its writer
	if err != nil {
		return &failure{code: exitUsage, what: sentence(err.Error()), then: "Name a bundle with --in."}
	}
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		in.Close()
		return &failure{code: exitUsage, what: fmt.Sprintf("%q is no plain file, and a bundle is read twice.", name), then: "Name a bundle with --in."}
	}
	defer in.Close()
	lock, err := store.ReadBundleLock(in)
	if err != nil {
		return explainBundle(err)
	}
	resolved, err := apply.ResolveHome(c.String("home"), s.place.UserHome)
	if err != nil {
		return err
	}
	home, err := apply.MakeHome(resolved, s.place.UserHome)
	if err != nil {
		return err
	}
	defer home.Close()
	held, err := home.Lock("slipway bundle import")
	if err != nil {
		return err
	}
	defer held.Release()
	var expected *manifests.Lock
	if known, err := knownLock(home.Root, lock.Repo, lock.Revision); err == nil {
		expected = &known
	} else if !c.Bool("accept-told") {
		return &failure{code: exitConsent, what: fmt.Sprintf("No lock of %s at %s is known here: only the bundle vouches for its bytes.", lock.Repo, lock.Revision),
			then: "Nothing was done. Lock the model first (slipway models lock), or take the bundle's word with --accept-told."}
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	installed, err := store.Import(s.ctx, home.Root, in, expected)
	if err != nil {
		return explainBundle(err)
	}
	return s.bundled(installed, name, "Installed")
}

// knownLock is the lock beside the model, else the one that is shipped.
func knownLock(home *os.Root, repo string, revision manifests.Revision) (manifests.Lock, error) {
	lock, err := store.LoadLock(home, repo, revision)
	if errors.Is(err, fs.ErrNotExist) {
		if shipped, ok := manifests.BundledLock(repo, revision); ok {
			return shipped, nil
		}
	}
	return lock, err
}

// explainBundle gives the step of an import: the bundle is the suspect, and the same command on it cannot help.
func explainBundle(err error) error {
	f := explain(err)
	switch {
	case errors.As(err, new(*store.IntegrityError)):
		f.then = steps[fault.CopyBundle].then
	case errors.As(err, new(*store.LockConflictError)):
		f.then = "Nothing was imported: the bundle contradicts the lock that is known here, and a revision never changes. Take the bundle from a source that you trust."
		f.next = nil
	}
	return f
}

// files is a number of files in words.
func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func (s *session) bundled(lock manifests.Lock, file, verb string) error {
	answer := bundleAnswer{Repo: lock.Repo, Revision: lock.Revision, File: file, Files: len(lock.Files), Bytes: lock.TotalBytes()}
	for _, f := range lock.Files {
		if f.Proof == manifests.Told {
			answer.Told++
		}
	}
	return s.result(exitOK, answer, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s at %s: %s, %s.\n", verb, lock.Repo, lock.Revision, files(answer.Files), plan.Bytes(answer.Bytes))
		switch {
		case answer.Told == 1:
			fmt.Fprintln(w, "The hash of one file is not proven from the revision.")
		case answer.Told > 1:
			fmt.Fprintf(w, "The hashes of %d files are not proven from the revision.\n", answer.Told)
		}
	})
}

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"slipway/atomicfile"
	"slipway/manifests"
)

// Partial is what has arrived of one file. It has one owner, proven by a lock on a file beside it; where the file
// system keeps no locks, its name is unique and nothing is resumed. WriteAt, ReadAt and Sync may be called from several
// goroutines; the rest from one.
type Partial struct {
	home *os.Root
	file manifests.File
	name string   // of the data, relative to the home
	data *os.File // open for reading and writing
	lock *os.File // nil when the name is unique

	writing   sync.Mutex // one write at a time, with the note that precedes it
	lastWrite int64      // when the last write of ours began, this run or an earlier one; nanoseconds since 1970
}

// OpenPartial opens or creates the partial file of a digest. *BusyError when another process has it.
func OpenPartial(home *os.Root, file manifests.File) (*Partial, error) {
	if err := file.SHA256.Validate(); err != nil {
		return nil, err
	}
	if err := home.MkdirAll(partialDir, 0o755); err != nil {
		return nil, err
	}
	base := path.Join(partialDir, file.SHA256.Hex())
	p := &Partial{home: home, file: file, name: base + ".part"}
	lock, lastWrite, proven, err := lockPartial(home, base+".lock", file.Path)
	if err != nil {
		return nil, err
	}
	p.lastWrite = lastWrite
	if proven {
		p.lock = lock
	} else {
		lock.Close()
		p.name = base + "." + nonce() + ".part"
	}
	if p.data, err = openData(home, p.name); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func openData(home *os.Root, name string) (*os.File, error) {
	f, err := home.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, spaceError(err, name)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &ForeignError{name, "is not a regular file"}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Reserve gives the file its full size and, where the file system can, its blocks. Without room it is a *NoSpaceError.
func (p *Partial) Reserve() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	info, err := p.data.Stat()
	if err != nil {
		return err
	}
	if info.Size() == p.file.Size && allocatedBytes(info) == info.Size() {
		return nil
	}
	p.willWrite()
	defer p.willWrite()
	if info.Size() > p.file.Size {
		if err := p.data.Truncate(p.file.Size); err != nil {
			return err
		}
	}
	if p.file.Size == 0 {
		return nil
	}
	if err := preallocate(p.data, p.file.Size); err != nil {
		return spaceError(err, p.name)
	}
	if info.Size() < p.file.Size {
		return spaceError(p.data.Truncate(p.file.Size), p.name)
	}
	return nil
}

// Identity distinguishes a partial file that was replaced by another program from the one that the journal speaks of.
func (p *Partial) Identity() (Identity, error) {
	info, err := p.data.Stat()
	if err != nil {
		return Identity{}, err
	}
	return identityOf(info), nil
}

func (p *Partial) WriteAt(b []byte, off int64) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.willWrite()
	n, err := p.data.WriteAt(b, off)
	return n, spaceError(err, p.name)
}

func (p *Partial) ReadAt(b []byte, off int64) (int, error) { return p.data.ReadAt(b, off) }

// Sync makes everything written durable.
func (p *Partial) Sync() error { return spaceError(p.data.Sync(), p.name) }

func (p *Partial) journalName() string { return p.name + ".json" }

// Journals returns the newest journal and the one before it, either may be nil. What they say is the caller's.
func (p *Partial) Journals() (newest, before []byte) {
	newest, _ = p.home.ReadFile(p.journalName())
	before, _ = p.home.ReadFile(p.journalName() + ".old")
	return newest, before
}

// SaveJournal replaces the journal and keeps the one before, so that a journal lost to a bad disk costs one segment.
func (p *Partial) SaveJournal(data []byte) error {
	if err := p.home.Rename(p.journalName(), p.journalName()+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeAtomic(p.home, p.journalName(), data, 0o644)
}

// Commit gives the file its final name. found is the SHA-256 of every byte of the partial file, computed by the caller
// from the file. Order: size and hash, fsync, read-only mode, the installed line, rename, fsync of the folder. A hash
// that is not the lock's is an *IntegrityError and changes nothing. On success the Partial is closed.
func (p *Partial) Commit(lock manifests.Lock, file string, found manifests.Digest) error {
	want, ok := lock.File(file)
	if !ok {
		return &NotInLockError{file}
	}
	info, err := p.data.Stat()
	if err != nil {
		return err
	}
	if info.Size() != want.Size || found != want.SHA256 {
		return &IntegrityError{Path: file, Expected: want.SHA256, Found: found, ExpectedBytes: want.Size,
			FoundBytes: info.Size()}
	}
	if err := p.data.Chmod(0o444); err != nil {
		return fmt.Errorf("making %s read-only: %w", file, err)
	}
	if err := p.Sync(); err != nil {
		return err
	}
	if info, err = p.data.Stat(); err != nil {
		return err
	}
	final := filePath(lock, file)
	if err := makeParents(p.home, lock, file); err != nil {
		return err
	}
	if err := appendInstalled(p.home, lock, installedLine{file, found, identityOf(info)}); err != nil {
		return err
	}
	if err := refuseForeign(p.home, final); err != nil {
		return err
	}
	if err := p.home.Rename(p.name, final); err != nil {
		return fmt.Errorf("giving %s its final name: %w", file, err)
	}
	if err := atomicfile.SyncFolder(p.home, path.Dir(final)); err != nil {
		return err
	}
	p.removeJournals()
	return p.Close()
}

// refuseForeign lets a file or a link be replaced, and nothing else.
func refuseForeign(home *os.Root, final string) error {
	info, err := home.Lstat(final)
	if err == nil && info.IsDir() {
		return &ForeignError{final, "is a folder where a file must be"}
	}
	return nil
}

// makeParents makes the folders of a file and writes the lock beside the model if it is not there yet.
func makeParents(home *os.Root, lock manifests.Lock, file string) error {
	if err := home.MkdirAll(path.Dir(filePath(lock, file)), 0o755); err != nil {
		return err
	}
	_, err := home.Lstat(LockPath(lock.Repo, lock.Revision))
	if err == nil {
		return nil
	}
	return SaveLock(home, lock)
}

// A quarantine report is beside the file it speaks of.
type quarantineReport struct {
	Path     string           `json:"path"`
	Expected manifests.Digest `json:"expected"`
	Found    manifests.Digest `json:"found"`
	Bytes    int64            `json:"bytes"`
	Source   string           `json:"source"`
}

// Quarantine moves the wrong bytes aside with a report, and continues with an empty partial file. An earlier
// quarantined file of the same digest is replaced: one is enough to look at, and they are large. It returns in place.
func (p *Partial) Quarantine(found manifests.Digest, source string) (string, error) {
	if err := p.home.MkdirAll(quarantineDir, 0o755); err != nil {
		return "", err
	}
	kept := path.Join(quarantineDir, p.file.SHA256.Hex())
	report, err := json.MarshalIndent(quarantineReport{p.file.Path, p.file.SHA256, found, p.file.Size, source}, "",
		"  ")
	if err != nil {
		return "", err
	}
	if err := writeAtomic(p.home, kept+".json", append(report, '\n'), 0o644); err != nil {
		return "", err
	}
	if err := p.home.Rename(p.name, kept); err != nil {
		return "", err
	}
	p.removeJournals()
	p.data.Close()
	p.data, err = openData(p.home, p.name)
	return kept, err
}

// Restart forgets the journals: nothing of the partial file counts any more. The blocks stay reserved.
func (p *Partial) Restart() { p.removeJournals() }

func (p *Partial) removeJournals() {
	p.home.Remove(p.journalName())
	p.home.Remove(p.journalName() + ".old")
}

// Discard removes what arrived, which is not needed any more, and closes the Partial.
func (p *Partial) Discard() error {
	p.removeJournals()
	err := p.home.Remove(p.name)
	p.Close()
	return err
}

// Close keeps what arrived and lets another process have it.
func (p *Partial) Close() error {
	var err error
	if p.data != nil {
		err = p.data.Close()
		p.data = nil
	}
	if p.lock != nil {
		// lets go of the lock; the file stays, because removing it would let two processes lock two files
		p.lock.Close()
		p.lock = nil
	}
	return err
}

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/engine/memory"
)

// Options of a store.
type Options struct {
	CapBytes   int64 // of all files, at every moment
	DailyBytes int64 // written in a day (UTC); 0 means no bound
	PageTokens int
	StateBytes int64                  // of a point's state
	RowBytes   int64                  // of a final hidden row, which points of a model with an MTP head have; 0: none
	Positions  func(tokens int) int64 // bytes of the first tokens positions of a page
	ReplyBytes int64                  // of the file of replies
	Draft      DraftOptions
	Now        func() time.Time
	Log        *slog.Logger
}

// Found is a point that an earlier run left.
type Found struct {
	Key  memory.Key
	Kind memory.Kind
	IDs  []int32
	Cost memory.Cost

	Resumed bool // its conversation was resumed
}

// Stats are totals since the store was opened.
type Stats struct {
	Written, WrittenBytes int64 // points; bytes of all files
	Damaged               int64 // files that were torn or flipped, dropped
	Refused               int64 // points not written because of the daily bound
}

// Store is a folder of points. Find, Cost and what is said to return at once are for one goroutine; Stats for any.
type Store struct {
	dir  string
	opt  Options
	lock *os.File

	ids   map[name]memory.PageID // pages known to the index
	names map[memory.PageID]name
	files map[name]bool // points known to the index
	found []Found

	state, page []byte // buffers of Load

	jobs    chan func()
	stopped chan struct{}

	// Only the background goroutine, once it runs:
	have    map[name]bool // pages on disk
	day     string
	today   int64
	replies int64

	mu    sync.Mutex
	stats Stats
}

// marker marks the folder as ours, and as a cache for backup programs.
const (
	marker     = "CACHEDIR.TAG"
	markerText = "Signature: 8a477f597d28d172789f06886806bc55\n# Restore points of slipway. They can be deleted at " +
		"any time while no server runs.\n"
)

// ErrInUse says that another server has the folder.
var ErrInUse = errors.New("another server uses this cache folder; give this one its own with --cache-disk, or run " +
	"without with --no-cache-disk")

// reserve is kept from the cap for the marker, the day's count, the lock and the folders themselves.
const reserve = 64 << 10

// mostHead is more than a point's header takes.
const mostHead = 1 << 10

// Open takes a folder into use and makes it if it is missing. Unreferenced pages and torn files are deleted; the other
// points are read up to their ids.
func Open(dir string, opt Options) (*Store, error) {
	s := &Store{dir: dir, opt: opt, ids: map[name]memory.PageID{}, names: map[memory.PageID]name{},
		files: map[name]bool{}, have: map[name]bool{},
		jobs: make(chan func(), 1024), stopped: make(chan struct{})}
	if least := reserve + opt.ReplyBytes + opt.StateBytes + s.pageFileBytes() + mostHead; opt.CapBytes < least {
		return nil, fmt.Errorf("a disk cache of %d bytes holds no restore point of this model; give %d or more with "+
			"--cache-disk-bytes (%d of them are for remembered replies), or none with --no-cache-disk", opt.CapBytes,
			least, opt.ReplyBytes)
	}
	if err := s.claim(); err != nil {
		return nil, err
	}
	if err := s.scan(); err != nil {
		s.lock.Close()
		return nil, err
	}
	s.readDay()
	go s.work()
	return s, nil
}

// claim makes the folder ours alone.
func (s *Store) claim() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("the cache folder cannot be made: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("the cache folder cannot be read: %w", err)
	}
	tag := filepath.Join(s.dir, marker)
	if _, err := os.Stat(tag); errors.Is(err, fs.ErrNotExist) {
		if len(entries) > 0 {
			return fmt.Errorf("%s holds other files; give an empty folder, or one that is not there yet", s.dir)
		}
		if err := os.WriteFile(tag, []byte(markerText), 0o600); err != nil {
			return fmt.Errorf("the cache folder cannot be written: %w", err)
		}
		excludeFromBackups(s.dir)
	}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = lockFile(filepath.Join(s.dir, "lock")); err != nil {
		return err
	}
	for _, sub := range []string{"points", "pages"} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), 0o700); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(s.dir, sub), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{"replies", "written-today"} {
		if info, err := os.Lstat(filepath.Join(s.dir, name)); err == nil && !info.Mode().IsRegular() {
			// reading a pipe would wait for ever
			return fmt.Errorf("%s in it is no file; delete it, as nothing of ours is in it", name)
		}
	}
	return nil
}

// scan reads what is there. Pages first, by name alone; they are checked when they are read.
func (s *Store) scan() error {
	pages, err := s.list("pages")
	if err != nil {
		return err
	}
	points, err := s.list("points")
	if err != nil {
		return err
	}
	size := s.pageFileBytes()
	foreign := map[name]bool{} // pages of another model or KV format: those of a folder have one size
	for n, bytes := range pages {
		switch {
		case bytes == size:
			s.have[n] = true
		case s.wholePage(n):
			foreign[n] = true
			os.Remove(s.path("pages", n))
		default:
			s.damage(s.path("pages", n), damaged("a page of %d bytes", bytes))
		}
	}
	used, dropped := map[name]bool{}, map[string]int{}
	for n := range points {
		f, names, err := s.readPoint(n)
		if err != nil && slices.ContainsFunc(names, func(page name) bool { return foreign[page] }) {
			dropped[fmt.Sprintf("%s with KV in %s", f.Key.Model, f.Key.KVFormat)]++
			os.Remove(s.path("points", n))
			continue
		}
		if err != nil {
			s.damage(s.path("points", n), err)
			continue
		}
		for _, page := range names {
			used[page] = true
		}
		s.files[n] = true
		s.found = append(s.found, f)
	}
	for of, points := range dropped {
		s.opt.Log.Warn("restore points on disk cannot serve this run and are dropped: their pages have another size",
			"of", of, "points", points)
	}
	for n := range s.have {
		if !used[n] {
			os.Remove(s.path("pages", n))
			delete(s.have, n)
		}
	}
	return nil
}

// list gives a folder's files by name, and removes what an interrupted write left.
func (s *Store) list(sub string) (map[name]int64, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, sub))
	if err != nil {
		return nil, fmt.Errorf("the cache folder cannot be read: %w", err)
	}
	out := map[name]int64{}
	for _, e := range entries {
		n, ok := parseName(e.Name())
		info, err := e.Info()
		if ok && err == nil && info.Mode().IsRegular() {
			out[n] = info.Size()
		} else if strings.HasPrefix(e.Name(), temporary) {
			os.Remove(filepath.Join(s.dir, sub, e.Name()))
		}
	}
	return out, nil
}

// wholePage reports whether a page's file is what was once written, of whatever size.
func (s *Store) wholePage(n name) bool {
	file, err := os.Open(s.path("pages", n))
	if err != nil {
		return false
	}
	defer file.Close()
	var header pageHeader
	head, err := readHead(file, pageMagic, &header)
	return err == nil && header.Chain == n.String() && wholeFile(file, head, header.Sections) == nil
}

// readPoint reads a point's file up to its ids. Its pages must be there; where one is missing, key and pages are given
// with the error.
func (s *Store) readPoint(n name) (f Found, pages []name, err error) {
	file, err := os.Open(s.path("points", n))
	if err != nil {
		return f, nil, err
	}
	defer file.Close()
	header, head, ids, err := openPoint(file)
	if err != nil {
		return f, nil, err
	}
	pages, whole := chain(header.Key, ids, s.opt.PageTokens)
	if whole != n || header.PageTokens != s.opt.PageTokens {
		return f, nil, damaged("the ids are not those of the file's name")
	}
	for _, page := range pages {
		if !s.have[page] {
			return Found{Key: header.Key}, pages, damaged("a page is missing")
		}
	}
	cost := memory.Cost{Bytes: head}
	for _, section := range header.Sections {
		cost.Bytes += section.Bytes
	}
	for _, page := range pages {
		cost.Pages = append(cost.Pages, s.pageID(page))
	}
	return Found{header.Key, header.Kind, ids, cost, header.Resumed}, pages, nil
}

// pageID numbers a page for the index.
func (s *Store) pageID(n name) memory.PageID {
	id, ok := s.ids[n]
	if !ok {
		id = memory.PageID(len(s.ids))
		s.ids[n], s.names[id] = id, n
	}
	return id
}

// Found gives the points that earlier runs left.
func (s *Store) Found() []Found { return s.found }

// Budget is what the index may hold.
func (s *Store) Budget() memory.Budget {
	return memory.Budget{OwnBytes: math.MaxInt64, Pages: math.MaxInt,
		TotalBytes: s.opt.CapBytes - reserve - s.opt.ReplyBytes, PageBytes: s.pageFileBytes()}
}

// Stats is safe from any goroutine.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *Store) count(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.stats)
}

// damage drops a file that is not what was written.
func (s *Store) damage(path string, why error) {
	s.opt.Log.Warn("a file of the disk cache is dropped", "file", filepath.Base(path), "why", why.Error())
	s.count(func(t *Stats) { t.Damaged++ })
	os.Remove(path)
}

func (s *Store) path(sub string, n name) string { return filepath.Join(s.dir, sub, n.String()) }

func (s *Store) pageFileBytes() int64 {
	return pageHeadLen + 4*int64(s.opt.PageTokens) + s.opt.Positions(s.opt.PageTokens)
}

// work runs jobs one after another.
func (s *Store) work() {
	defer close(s.stopped)
	for job := range s.jobs {
		job()
	}
}

// Flush waits until what was asked for so far is done.
func (s *Store) Flush() { <-s.Flushed() }

// Flushed gives a channel that is closed when what was asked for so far is done.
func (s *Store) Flushed() <-chan struct{} {
	done := make(chan struct{})
	s.jobs <- func() { close(done) }
	return done
}

// Close finishes what was asked for and gives the folder up, but waits no longer than patience; what is not written by
// then is lost, and nothing is left half-written under a final name.
func (s *Store) Close(patience time.Duration) {
	close(s.jobs)
	select {
	case <-s.stopped:
	case <-time.After(patience):
		s.opt.Log.Warn("the disk cache was closed before everything was written")
	}
	s.lock.Close()
}

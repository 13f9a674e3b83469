package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"sync"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
)

// A transfer is one file on its way. Bytes that were hashed are never written again within a generation; a restart ends
// a generation after every writer has left.
type transfer struct {
	d       *download
	file    manifests.File
	segment int64
	part    *store.Partial
	inode   uint64

	mu         sync.Mutex
	done       rangeSet        // durable
	pieces     map[*piece]bool // in flight
	oneStream  bool
	generation int
	restart    error // why this generation ends; nil while it continues
	restarts   int   // from this endpoint
	finishing  bool  // the hasher has seen the end
	endpoint   int   // index into the client's endpoints
	tries      []string
	hashedTo   int64  // of hashState: a durable border
	hashState  []byte // crypto/sha256
	etagsLie   bool   // two different ones were seen: they are not used any more
	etag       string
	etagHost   string
	address    *url.URL      // where the last redirect led; nil: ask the hub
	news       chan struct{} // capacity 1: something changed that the hasher waits for
	ended      chan struct{} // closed when the hasher has returned
	judged     chan struct{} // closed when the hash was compared for the first time
	judgedOnce sync.Once

	journalMu sync.Mutex // one journal write at a time
}

func (t *transfer) poke() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// open prepares the partial file and takes up its journal.
func (d *download) open(ctx context.Context, f manifests.File) (*transfer, error) {
	part, err := store.OpenPartial(d.home, f)
	if err != nil {
		return nil, err
	}
	before, err := part.Identity()
	if err != nil {
		part.Close()
		return nil, err
	}
	newest, older := part.Journals()
	j, known := readJournal(f, before.Inode, before.Bytes, newest, older)
	altered := part.Altered() && j.HashedBytes > 0
	if altered {
		err = forgetHash(part, &j)
	}
	if err == nil {
		err = part.Reserve()
	}
	if err != nil {
		part.Close()
		return nil, err
	}
	segment := d.client.config.SegmentBytes
	if segment <= 0 {
		segment = segmentBytes(f.Size)
	}
	t := &transfer{d: d, file: f, segment: segment, part: part, inode: before.Inode, done: j.Done,
		pieces:    map[*piece]bool{},
		oneStream: j.OneStream, hashedTo: j.HashedBytes, hashState: j.HashState, etag: j.ETag, etagHost: j.ETagHost,
		news: make(chan struct{}, 1), ended: make(chan struct{}), judged: make(chan struct{})}
	if t.oneStream && t.done.bytes() < f.Size {
		t.done, t.hashedTo, t.hashState = nil, 0, nil
	}
	switch {
	case !known && before.Bytes > 0 && !t.small():
		d.tell.say(Event{Kind: Notice, Path: f.Path, Why: fmt.Sprintf(
			"There is a partial file of %s and no journal that says which of its bytes are good; it is fetched from "+
				"its beginning.", f.Path)})
	case altered:
		d.tell.say(Event{Kind: Notice, Path: f.Path, Why: fmt.Sprintf(
			"The partial file of %s changed after slipway last wrote to it; what it holds is hashed again from its "+
				"beginning.",
			f.Path)})
	}
	d.tell.say(Event{Kind: Started, Path: f.Path, Bytes: t.done.bytes(), Total: f.Size})
	go func() {
		if err := t.hashAndFinish(ctx); err != nil {
			d.fail(err)
		}
		t.judgedOnce.Do(func() { close(t.judged) })
		close(t.ended)
		d.wake() // after ended is closed: a worker that looks earlier would wait for ever
	}()
	return t, nil
}

// forgetHash takes the hash state out of the journals, on disk too and before anything is written: from the next write
// on nothing shows any more that the file was altered.
func forgetHash(part *store.Partial, j *journal) error {
	j.HashedBytes, j.HashState = 0, nil
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	part.Restart()
	return part.SaveJournal(data)
}

// small: one segment and never resumed across runs, so that no journal is written for it.
func (t *transfer) small() bool { return t.file.Size <= t.segment }

// give takes a piece back from its worker. What was written is made durable and counts.
func (t *transfer) give(p *piece) error {
	t.mu.Lock()
	keep := byteRange{p.from, p.at}
	whole := p.at >= p.to
	discard := t.oneStream && !whole
	t.mu.Unlock()
	var err error
	if keep.From < keep.To && !discard && !(t.small() && whole) {
		err = t.part.Sync()
	}
	t.mu.Lock()
	delete(t.pieces, p)
	if discard && keep.From < keep.To && t.restart == nil {
		t.restart = errors.New("one stream was cut")
	}
	if err == nil && p.generation == t.generation && t.restart == nil && !discard {
		t.done = t.done.add(keep)
	}
	if t.restart != nil && len(t.pieces) == 0 {
		t.beginAgain()
	}
	t.mu.Unlock()
	t.poke()
	if err == nil && keep.From < keep.To && !discard && !t.small() {
		err = t.saveJournal()
	}
	return err
}

// beginAgain starts a new generation from nothing. Called with the mutex held and no piece in flight.
func (t *transfer) beginAgain() {
	t.generation++
	t.restart, t.done, t.hashedTo, t.hashState, t.etag, t.etagHost = nil, nil, 0, nil, "", ""
	t.part.Restart()
}

// startOver asks every worker of the file to leave; the last one begins the next generation.
func (t *transfer) startOver(why error, oneStream bool) (restarts int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.restart == nil {
		t.restart = why
		t.restarts++
		t.oneStream = t.oneStream || oneStream
		for p := range t.pieces {
			if p.cancel != nil {
				p.cancel()
			}
		}
	}
	return t.restarts
}

// saveJournal writes what is durable now.
func (t *transfer) saveJournal() error {
	t.journalMu.Lock()
	defer t.journalMu.Unlock()
	t.mu.Lock()
	j := journal{SchemaVersion: journalSchemaVersion, SHA256: t.file.SHA256, Bytes: t.file.Size, Inode: t.inode,
		Done:        t.done,
		HashedBytes: t.hashedTo, HashState: t.hashState, ETag: t.etag, ETagHost: t.etagHost, OneStream: t.oneStream}
	stop := t.finishing || t.restart != nil
	if j.HashedBytes > t.done.reach(0) {
		j.HashedBytes, j.HashState = 0, nil
	}
	t.mu.Unlock()
	if stop {
		return nil
	}
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return t.part.SaveJournal(data)
}

// written is how far the file has bytes without a gap from at on, durable or not, and the generation they belong to.
func (t *transfer) written(at int64) (to int64, generation int) {
	to = at
	for moved := true; moved; {
		reach := t.done.reach(to)
		for p := range t.pieces {
			if p.from <= reach && reach < p.at {
				reach = p.at
			}
		}
		moved = reach > to
		to = reach
	}
	return to, t.generation
}

// keep makes the state at a stop durable: what is written counts, and the hash continues from where it is.
func (t *transfer) keep(h hash.Hash, hashed int64, generation int) {
	t.mu.Lock()
	sound := generation == t.generation && t.restart == nil && hashed <= t.done.reach(0)
	if sound && h != nil {
		t.hashedTo, t.hashState = hashed, saveHash(h)
	}
	nothing := t.done.bytes() == 0
	t.mu.Unlock()
	if sound && !nothing {
		t.saveJournal()
	}
}

func (t *transfer) inOneStream() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.oneStream
}

// settle lets a worker wait until the small file that it brought has its final name, so that no more than one file a
// connection is unfinished at any moment.
func (t *transfer) settle(ctx context.Context) {
	t.mu.Lock()
	whole := t.done.bytes() == t.file.Size
	t.mu.Unlock()
	if t.small() && whole {
		select {
		case <-t.judged:
		case <-ctx.Done():
		}
	}
}

func (t *transfer) arrived() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done.bytes()
}

func (t *transfer) endpointNow() string { return t.d.client.endpoints[t.endpointIndex()] }

func (t *transfer) endpointIndex() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.endpoint
}

// nextEndpoint turns from the endpoint that failed to the next, if there is one that was not asked yet. Several workers
// may fail at the same one: only the first of them turns.
func (t *transfer) nextEndpoint(failed int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endpoint != failed {
		return true
	}
	if t.endpoint+1 >= len(t.d.client.endpoints) {
		return false
	}
	t.endpoint++
	t.address, t.etag, t.etagHost, t.restarts = nil, "", "", 0
	return true
}

// tick bounds how long the hasher waits for news that a lost wake-up would bring.
const tick = 500 * time.Millisecond

package hub

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"slipway/installer/store"
	"slipway/manifests"
)

// Request is what to download: every file of the lock that is not installed yet, into the store of Home.
type Request struct {
	Home *os.Root
	Lock manifests.Lock
	// SkipUpstream leaves out the question whether the hub's own list agrees with the lock. The hashes decide either
	// way.
	SkipUpstream bool
}

// Download brings every missing file: preflight, space, segments in parallel, hash, final name. It returns nil only
// when every file of the lock has its final name with the right hash. When nothing is missing it asks the network
// nothing. Stopped at any moment, it keeps what arrived, and calling it again continues. Errors: *NetworkError,
// *LimitedError (later); *AccessError; *UpstreamDiffersError; *WrongBytesError; *TooLargeError; *RedirectError;
// *NotAHubError; *store.NoSpaceError; *store.BusyError; the context's. One download at a time a client.
func (c *Client) Download(ctx context.Context, request Request, progress Progress) error {
	if err := request.Lock.Validate(); err != nil {
		return err
	}
	report, err := store.Verify(ctx, request.Home, request.Lock, false)
	if err != nil {
		return err
	}
	if report, err = store.Settle(ctx, request.Home, request.Lock, report); err != nil {
		return err
	}
	if report.OK() {
		return nil
	}
	d := &download{client: c, tell: &c.tell, home: request.Home, lock: request.Lock, workersLeft: make(chan struct{}),
		same: map[manifests.Digest][]string{}, said: map[string]time.Time{}}
	before := c.tell.to(progress)
	defer func() { c.tell.to(before) }()
	d.changed = sync.NewCond(&d.mu)
	d.plan(report)
	if err := d.preflight(ctx, request); err != nil {
		return err
	}
	return d.run(ctx)
}

// A download is one call of Download.
type download struct {
	client *Client
	home   *os.Root
	lock   manifests.Lock
	tell   *teller // the client's, so that events come one at a time
	ctx    context.Context
	cancel context.CancelFunc

	same map[manifests.Digest][]string // other paths with the bytes of a queued file

	mu           sync.Mutex
	changed      *sync.Cond
	queue        []manifests.File
	opening      bool
	active       []*transfer
	allowed      int // connections, moved by adapt
	arrivedBytes int64
	err          error
	limited      bool // the hub said that it is too much
	said         map[string]time.Time
	workersLeft  chan struct{} // closed when no worker runs any more
}

// sameSpan is how long a sentence is not repeated: the connections of a download fail together.
const sameSpan = 10 * time.Second

// waiting says why a connection waits, unless another one has just said the same.
func (d *download) waiting(e Event) {
	now := d.client.config.Now()
	d.mu.Lock()
	before, known := d.said[e.Why]
	again := known && now.Sub(before) < sameSpan
	if !again {
		d.said[e.Why] = now
	}
	d.mu.Unlock()
	if !again {
		d.tell.say(e)
	}
}

// plan queues each missing digest once, large files first: they end last otherwise.
func (d *download) plan(report store.Report) {
	for _, bad := range report.Bad() {
		f, _ := d.lock.File(bad.Path)
		if others, queued := d.same[f.SHA256]; queued {
			d.same[f.SHA256] = append(others, f.Path)
			continue
		}
		d.same[f.SHA256] = nil
		d.queue = append(d.queue, f)
	}
	sortBySize(d.queue)
}

func (d *download) preflight(ctx context.Context, request Request) error {
	var needed int64
	for _, f := range d.queue {
		if f.Size > maxHTTPBytes {
			return &TooLargeError{f.Path, f.Size}
		}
		needed += f.Size * int64(1+len(d.same[f.SHA256]))
	}
	if err := store.RequireSpace(d.home, d.queue, needed); err != nil {
		return err
	}
	if request.SkipUpstream {
		return nil
	}
	entries, err := d.client.treeFrom(ctx, d.client.endpoints[0], d.lock.Repo, d.lock.Revision)
	var access *AccessError
	var hostile *HostileError
	var way *WayError
	alone := len(d.client.endpoints) == 1
	switch {
	case err == nil:
		return compareTree(entries, d.lock)
	case alone && (errors.As(err, new(*UnansweredError)) || errors.As(err, &way) && way.Kind != WebPage):
		return err // the files are at the same host
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &access) && d.client.fromOrigin(d.client.endpoints[0]), errors.As(err, &hostile),
		errors.Is(err, ErrOffline):
		return err
	}
	return nil // a mirror without the API, or one that is down: the lock's own numbers serve
}

// run starts the workers and waits for the end.
func (d *download) run(ctx context.Context) error {
	d.ctx, d.cancel = context.WithCancel(ctx)
	defer d.cancel()
	stopWaking := context.AfterFunc(d.ctx, d.wake)
	defer stopWaking()
	d.allowed = min(d.client.config.Connections, firstConnections)
	var workers, helpers sync.WaitGroup
	for i := range d.client.config.Connections {
		workers.Go(func() { d.work(i) })
	}
	helpers.Go(d.adapt)
	workers.Wait()
	d.cancelIfFailed()
	close(d.workersLeft)
	for _, t := range d.transfers() {
		<-t.ended
		t.part.Close()
	}
	d.cancel()
	helpers.Wait()
	if d.err != nil {
		return d.err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	report, err := store.Verify(ctx, d.home, d.lock, false)
	if err == nil && !report.OK() {
		bad := report.Bad()[0]
		return &store.IntegrityError{Path: bad.Path, Expected: bad.Expected, ExpectedBytes: bad.ExpectedBytes,
			FoundBytes: bad.FoundBytes}
	}
	return err
}

func (d *download) cancelIfFailed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		d.cancel()
	}
}

func (d *download) transfers() []*transfer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*transfer(nil), d.active...)
}

// work is one connection: pieces, one after the other, until there are none.
func (d *download) work(number int) {
	var buffer []byte
	for {
		p, err := d.take(number)
		if err != nil {
			d.fail(err)
		}
		if p == nil {
			return
		}
		if buffer == nil {
			buffer = make([]byte, writeBufferBytes)
		}
		err = d.fetch(d.ctx, p, buffer)
		if gave := p.transfer.give(p); err == nil {
			err = gave
		}
		if err != nil {
			d.fail(err)
		} else {
			p.transfer.settle(d.ctx)
		}
		d.wake()
	}
}

// take waits for a piece; nil when all is done or the download stops.
func (d *download) take(number int) (*piece, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		d.sweep() // before looking: a transfer that ended while nobody waited has woken nobody
		if d.ctx.Err() != nil || d.err != nil {
			return nil, nil
		}
		if len(d.queue) == 0 && len(d.active) == 0 && !d.opening {
			d.changed.Broadcast()
			return nil, nil
		}
		if number < d.allowed {
			if p := d.pieceOfActive(); p != nil {
				return p, nil
			}
			// One file is opened at a time, in the order of the lock: two processes that both opened several would each
			// find the other at one of them, and both would give way.
			if len(d.queue) > 0 && !d.opening && len(d.active) < 2*d.client.config.Connections {
				f := d.queue[0]
				d.queue = d.queue[1:]
				d.opening = true
				d.mu.Unlock()
				t, err := d.open(d.ctx, f)
				d.mu.Lock()
				d.opening = false
				if err != nil {
					return nil, err
				}
				d.active = append(d.active, t)
				d.changed.Broadcast()
				continue
			}
			if p := d.stolen(); p != nil {
				return p, nil
			}
		}
		d.changed.Wait()
	}
}

// sweep drops transfers that have ended. Called with the mutex held.
func (d *download) sweep() {
	if d.err != nil {
		return // workers may still hold a file whose hasher failed
	}
	kept := d.active[:0]
	for _, t := range d.active {
		select {
		case <-t.ended:
			t.part.Close()
		default:
			kept = append(kept, t)
		}
	}
	d.active = kept
}

func (d *download) pieceOfActive() *piece {
	for _, t := range d.active {
		t.mu.Lock()
		p := t.next()
		t.mu.Unlock()
		if p != nil {
			return p
		}
	}
	return nil
}

func (d *download) stolen() *piece {
	for _, t := range d.active {
		t.mu.Lock()
		p := t.steal()
		t.mu.Unlock()
		if p != nil {
			return p
		}
	}
	return nil
}

// fail keeps the first error that is not a consequence of stopping, and stops everything.
func (d *download) fail(err error) {
	d.mu.Lock()
	if d.err == nil && d.ctx.Err() == nil {
		d.err = err
	}
	d.mu.Unlock()
	d.cancel()
	d.wake()
}

func (d *download) wake() {
	d.mu.Lock()
	d.changed.Broadcast()
	d.mu.Unlock()
}

func (d *download) arrived(t *transfer, n int) {
	d.mu.Lock()
	d.arrivedBytes += int64(n)
	d.mu.Unlock()
	d.tell.say(Event{Kind: Arrived, Path: t.file.Path, Bytes: int64(n), Total: t.file.Size})
}

// finished copies the file to every other path that has the same bytes.
func (d *download) finished(t *transfer) error {
	for _, other := range d.same[t.file.SHA256] {
		if err := store.Copy(d.ctx, d.home, d.lock, t.file.Path, other); err != nil {
			return err
		}
		d.tell.say(Event{Kind: Done, Path: other, Bytes: t.file.Size, Total: t.file.Size})
	}
	return nil
}

// firstConnections is where the number of connections starts; adapt doubles it while that pays.
const firstConnections = 4

// adapt doubles the connections as long as the last doubling made the whole faster by a tenth or each connection keeps
// its speed; it never takes away, 429 does (fewer). On a fast link the processor is the limit and four are enough; a
// server that limits each connection is met with all of them within a fraction of a second.
func (d *download) adapt() {
	const window = 100 * time.Millisecond
	var before int64
	var lastRate, lastAllowed float64
	for d.client.config.Connections > firstConnections {
		if sleep(d.ctx, window) != nil {
			return
		}
		d.mu.Lock()
		rate := float64(d.arrivedBytes - before)
		before = d.arrivedBytes
		allowed := float64(d.allowed)
		grew := lastAllowed == 0 || allowed == lastAllowed || rate > lastRate*1.1
		if rate > 0 && grew && !d.limited && d.allowed < d.client.config.Connections &&
			rate/allowed < busyBytesPerWindow {
			lastRate, lastAllowed = rate, allowed
			d.allowed = min(2*d.allowed, d.client.config.Connections)
			d.changed.Broadcast()
		}
		d.mu.Unlock()
	}
}

// busyBytesPerWindow: a connection that brings more than 100 MB/s is not limited by its server.
const busyBytesPerWindow = 10 << 20

// fewer halves the connections: the hub said that it is too much.
func (d *download) fewer() {
	d.mu.Lock()
	d.allowed, d.limited = max(1, d.allowed/2), true
	d.mu.Unlock()
}

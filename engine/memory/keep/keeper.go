package keep

import (
	"log/slog"
	"sync"

	"slipway/engine/memory"
	"slipway/engine/memory/disk"
	"slipway/engine/pass"
)

// Options of a keeper.
type Options struct {
	Key memory.Key

	PointBytes     int64 // a state's own bytes
	TapeTokenBytes int64 // what a tape adds for each token
	PageTokens     int
	WindowTokens   int
	ChunkTokens    int
	Memory         memory.Budget
	ReplyBytes     int64
	Disk           *disk.Store // nil: no disk tier
	WorthReading   int         // tokens that a file must save beyond what memory has
	// Import makes a state after tokens from a file's parts. The draft's may be missing. Its first shared pages are
	// near's.
	Import func(tokens int, state []byte, draft disk.Draft, near pass.State, shared int, page func(index, tokens int) (
		[]byte, error)) (pass.State, error)

	Decode func([]int32) string // for the recogniser of volatile text; its results are never logged
	Log    *slog.Logger
}

// Counters are totals since the start.
type Counters struct {
	Hits, Misses   int // prompts that a point served, and others
	FromDisk       int // hits that were read from disk
	Saved, Evicted int // points, in memory
	Damaged        int // files dropped because they were torn or flipped
	Refused        int // points that were not saved for want of room
	WrittenBytes   int64
}

// Keeper keeps the restore points of one network.
type Keeper struct {
	opt       Options
	index     *memory.Index
	states    map[*memory.Point]pass.State
	period    int
	unwritten []*memory.Point // in memory; found no room on disk while others were being written

	replies  *memory.Replies
	volatile memory.Volatile

	mu       sync.Mutex // guards what follows: other goroutines use it
	finished []ended    // writes that ended in the disk's goroutine, not handled yet
	counters Counters
	usage    [2]memory.Usage
	recent   []Report
}

// historyTokens is how many ids without a point are remembered to explain a miss: 8 MiB of them.
const historyTokens = 2 << 20

// New makes a keeper with the points that earlier runs left on disk.
func New(opt Options) *Keeper {
	k := &Keeper{opt: opt, states: map[*memory.Point]pass.State{}, replies: memory.NewReplies(opt.ReplyBytes),
		period: memory.Period(opt.WindowTokens, opt.ChunkTokens, opt.Memory.OwnBytes, opt.PointBytes)}
	k.index = k.emptyIndex()
	if opt.Disk != nil {
		k.readDisk()
	}
	k.publish()
	return k
}

func (k *Keeper) emptyIndex() *memory.Index {
	return memory.NewIndex(k.opt.Key, k.Budget(memory.InMemory), k.Budget(memory.OnDisk), historyTokens)
}

// Replies are the remembered replies. Safe from any goroutine.
func (k *Keeper) Replies() *memory.Replies { return k.replies }

// Counters is safe from any goroutine.
func (k *Keeper) Counters() Counters {
	k.mu.Lock()
	c := k.counters
	k.mu.Unlock()
	if k.opt.Disk != nil {
		s := k.opt.Disk.Stats()
		c.Damaged += int(s.Damaged)
		c.WrittenBytes = s.WrittenBytes
	}
	return c
}

// Usage of a tier is safe from any goroutine.
func (k *Keeper) Usage(t memory.Tier) memory.Usage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.usage[t]
}

// Budget of a tier; zero where there is none. Safe from any goroutine.
func (k *Keeper) Budget(t memory.Tier) memory.Budget {
	switch {
	case t == memory.InMemory:
		return k.opt.Memory
	case k.opt.Disk != nil:
		return k.opt.Disk.Budget()
	}
	return memory.Budget{}
}

func (k *Keeper) count(f func(*Counters)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&k.counters)
}

// publish makes the tiers' usage visible to other goroutines.
func (k *Keeper) publish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.usage = [2]memory.Usage{k.index.Usage(memory.InMemory), k.index.Usage(memory.OnDisk)}
}

// pageIDs converts page numbers for the index.
func pageIDs(pages []int32) []memory.PageID {
	out := make([]memory.PageID, len(pages))
	for i, p := range pages {
		out[i] = memory.PageID(p)
	}
	return out
}

// makeRoom makes room in memory. If only the point that the request was restored from is in the way, it is evicted too.
func (k *Keeper) makeRoom(cost memory.Cost, claim memory.Claim, own *memory.Point) bool {
	gone, ok := k.index.Room(memory.InMemory, cost, claim)
	k.free(memory.InMemory, gone)
	if !ok && own != nil {
		k.index.Unpin(own)
		var more []memory.Gone
		more, ok = k.index.Room(memory.InMemory, cost, claim)
		k.index.Pin(own)
		k.free(memory.InMemory, more)
		gone = append(gone, more...)
	}
	k.count(func(c *Counters) { c.Evicted += len(gone) })
	return ok
}

// free releases the states or files of evicted points.
func (k *Keeper) free(t memory.Tier, gone []memory.Gone) {
	for _, g := range gone {
		if t == memory.OnDisk {
			k.removeFile(g)
			continue
		}
		k.states[g.Point].Release()
		delete(k.states, g.Point)
	}
}

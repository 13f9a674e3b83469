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
	WorthReading   int         // tokens that a file must save over what memory has
	// Import makes a state after tokens from a file's parts; the draft's may be missing; its first shared pages are those of near.
	Import func(tokens int, state []byte, draft disk.Draft, near pass.State, shared int, page func(index, tokens int) ([]byte, error)) (pass.State, error)

	Decode func([]int32) string // for the recogniser of volatile text; its results are never logged
	Log    *slog.Logger
}

// Counters are totals since the start.
type Counters struct {
	Hits, Misses   int // prompts that a point served, and others
	FromDisk       int // hits that were read from disk
	Saved, Evicted int // points, in memory
	Damaged        int // files dropped because they were torn or flipped
	Refused        int // points that found no room
	WrittenBytes   int64
}

// Keeper is one network's memory.
type Keeper struct {
	opt    Options
	index  *memory.Index
	states map[*memory.Point]pass.State
	period int
	owed   []*memory.Point // in memory, and found no room on disk while others were being written

	replies  *memory.Replies
	volatile memory.Volatile

	mu       sync.Mutex // guards what follows: other goroutines use it
	finished []ended    // from the disk's goroutine, to be taken in
	counters Counters
	usage    [2]memory.Usage
	recent   []Report
}

// historyTokens is how many ids without a point are remembered to say why a prompt missed: 8 MiB of them.
const historyTokens = 2 << 20

// New makes a keeper, with the points that an earlier run left on disk.
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

// publish shows the tiers' usage to other goroutines.
func (k *Keeper) publish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.usage = [2]memory.Usage{k.index.Usage(memory.InMemory), k.index.Usage(memory.OnDisk)}
}

// pageIDs numbers memory pages for the book.
func pageIDs(pages []int32) []memory.PageID {
	out := make([]memory.PageID, len(pages))
	for i, p := range pages {
		out[i] = memory.PageID(p)
	}
	return out
}

// room makes room in memory. Where the only thing in the way is the request's own source, that gives way.
func (k *Keeper) room(cost memory.Cost, claim memory.Claim, own *memory.Point) bool {
	gone, ok := k.index.Room(memory.InMemory, cost, claim)
	k.leave(memory.InMemory, gone)
	if !ok && own != nil {
		k.index.Unpin(own)
		var more []memory.Gone
		more, ok = k.index.Room(memory.InMemory, cost, claim)
		k.index.Pin(own)
		k.leave(memory.InMemory, more)
		gone = append(gone, more...)
	}
	k.count(func(c *Counters) { c.Evicted += len(gone) })
	return ok
}

// leave gives back what points held in a tier.
func (k *Keeper) leave(t memory.Tier, gone []memory.Gone) {
	for _, g := range gone {
		if t == memory.OnDisk {
			k.removeFile(g)
			continue
		}
		k.states[g.Point].Release()
		delete(k.states, g.Point)
	}
}

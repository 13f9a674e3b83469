package keep

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"slipway/engine/memory"
	"slipway/engine/memory/disk"
	"slipway/engine/pass"
)

// ended is a write that the disk's goroutine has ended.
type ended struct {
	point *memory.Point
	err   error
}

// store sends a point to the disk if it is worth a file. The point stays in memory until it is written. A file holds
// the state at the point's reach, so one with a tape is settled first.
func (k *Keeper) store(p *memory.Point, reach []int32, s pass.State) {
	if k.opt.Disk == nil {
		return
	}
	cost, ok := k.opt.Disk.Cost(k.opt.Key, p.Kind, reach)
	if !ok {
		return
	}
	claim := p.Conversation().Claim()
	if p.Kind == memory.KindPeriodic {
		claim = memory.ClaimSpare
	}
	gone, ok := k.index.Room(memory.OnDisk, cost, claim)
	k.free(memory.OnDisk, gone)
	if !ok {
		if claim == memory.ClaimResumed && p.Kind == memory.KindTurn {
			k.unwritten = append(slices.DeleteFunc(k.unwritten, func(p *memory.Point) bool {
				return k.states[p] == nil
			}), p)
		}
		return
	}
	done := func(err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.finished = append(k.finished, ended{p, err})
	}
	if len(p.Tail) > 0 {
		settled, err := s.Settle(s.Reach())
		if err != nil {
			k.opt.Log.Warn("a restore point is not written to disk", "error", err.Error())
			return
		}
		s = settled
		saved := done
		done = func(err error) {
			settled.Release()
			saved(err)
		}
	}
	k.index.Pin(p)
	k.index.Hold(p, memory.OnDisk, cost)
	k.opt.Disk.Save(k.opt.Key, p.Kind, p.Conversation().Resumed(), slices.Clone(reach), s, done)
}

// storePeriodic sends the periodic points on the path of ids to the disk, once their request has ended and they were
// thinned, so that an edit, or a retry after a cancel, finds them after a restart too.
func (k *Keeper) storePeriodic(ids []int32) {
	if k.opt.Disk == nil {
		return
	}
	for _, p := range k.index.Along(k.opt.Key, ids) {
		if p.Kind == memory.KindPeriodic && p.In(memory.InMemory) && !p.In(memory.OnDisk) {
			k.store(p, p.Prefix(), k.states[p])
		}
	}
}

// collect handles the writes that have ended since the last call.
func (k *Keeper) collect() {
	k.mu.Lock()
	finished := k.finished
	k.finished = nil
	k.mu.Unlock()
	for _, w := range finished {
		k.index.Unpin(w.point)
		if w.err != nil {
			k.opt.Log.Warn("a restore point was not written to disk", "error", w.err.Error())
			k.removeFile(k.index.Release(w.point, memory.OnDisk, memory.LostEvicted))
		}
	}
	if len(finished) > 0 {
		owed := k.unwritten
		k.unwritten = nil
		for _, p := range owed {
			if s := k.states[p]; s != nil && !p.In(memory.OnDisk) {
				k.store(p, slices.Concat(p.Prefix(), p.Tail), s)
			}
		}
	}
}

// WritePending sends to the disk what found no room there while other points were being written. It waits for those
// writes, but no longer than patience. No request may be running.
func (k *Keeper) WritePending(patience time.Duration) {
	if k.opt.Disk == nil || len(k.unwritten) == 0 {
		return
	}
	select {
	case <-k.opt.Disk.Flushed():
		k.collect()
	case <-time.After(patience):
	}
}

// awaitWrites waits until no point is being written, as such points cannot be evicted from memory: that is faster than
// computing a resumed conversation again. It reports whether there is a disk.
func (k *Keeper) awaitWrites() bool {
	if k.opt.Disk == nil {
		return false
	}
	k.opt.Disk.Flush()
	k.collect()
	return true
}

// removeFile deletes the file of a point that left the disk tier.
func (k *Keeper) removeFile(g memory.Gone) {
	k.opt.Disk.Remove(g.Key(), append(g.Prefix(), g.Tail...), g.Free)
}

// find looks for the best point and brings it into memory. Damaged files that it meets are deleted.
func (k *Keeper) find(prompt []int32, most int) (m memory.Match, fetched bool) {
	for {
		inMemory := k.index.Find(k.opt.Key, prompt, most, false)
		m = k.index.Find(k.opt.Key, prompt, most, true)
		if m.Point == nil || m.Point.In(memory.InMemory) || m.Usable < inMemory.Usable+k.opt.WorthReading {
			return inMemory, false
		}
		p, err := k.fetch(m.Point, prompt[:m.Usable])
		var torn *disk.DamageError
		switch {
		case err == nil:
			m.Point = p
			return m, true
		case errors.As(err, &torn) || errors.Is(err, fs.ErrNotExist):
			k.opt.Log.Warn("a file of the disk cache is dropped", "why", err.Error())
			k.count(func(c *Counters) { c.Damaged++ })
			k.removeFile(k.index.Release(m.Point, memory.OnDisk, memory.LostDamaged))
		default:
			k.opt.Log.Warn("a restore point cannot be read from disk", "error", err.Error())
			return k.index.Find(k.opt.Key, prompt, most, false), false // the room made for it may have cost inMemory
		}
	}
}

// errNoRoom says that memory is full of points in use.
var errNoRoom = errors.New("every point in memory is in use")

// freshPages numbers the pages that a state will take once it is made. No page of the pool has such a number.
const freshPages memory.PageID = 1 << 40

// fetch reads the state after ids into memory, sharing the whole pages of the nearest point there. Other requests wait
// meanwhile, less than for a chunk of prefill: a token of the 27B is 64 KiB to read, 22 µs at 3 GB/s, and some 5 ms to
// compute, so that a whole window of 262,144 is read in the time of about 1,200 computed tokens.
func (k *Keeper) fetch(p *memory.Point, ids []int32) (*memory.Point, error) {
	k.index.Pin(p)
	defer k.index.Unpin(p)
	var near pass.State
	shared := 0
	cost := memory.Cost{Bytes: k.opt.PointBytes}
	if n := k.index.Nearest(k.opt.Key, ids); n != nil {
		k.index.Pin(n)
		defer k.index.Unpin(n)
		near = k.states[n]
		shared = n.Len / k.opt.PageTokens
		cost.Pages = pageIDs(near.Pages()[:shared])
	}
	for i := shared; i < (len(ids)+k.opt.PageTokens-1)/k.opt.PageTokens; i++ {
		cost.Pages = append(cost.Pages, freshPages+memory.PageID(i))
	}
	if !k.makeRoom(cost, memory.ClaimResumed, nil) {
		k.awaitWrites()
		if !k.makeRoom(cost, memory.ClaimResumed, nil) {
			return nil, errNoRoom
		}
	}
	saved, err := k.opt.Disk.Load(k.opt.Key, ids)
	if err != nil {
		return nil, err
	}
	state, err := k.opt.Import(len(ids), saved.State, saved.Draft, near, shared, saved.Page)
	if err != nil {
		return nil, err
	}
	cost.Pages = pageIDs(state.Pages())
	if len(p.Tail) > 0 { // the file holds the state at the tape's end, which is another point
		p = k.index.Add(k.opt.Key, ids, nil, p.Kind, p.Conversation(), memory.InMemory, cost)
	} else {
		k.index.Hold(p, memory.InMemory, cost)
	}
	k.states[p] = state
	return p, nil
}

// Unload releases every state in memory, before the network is unloaded; points on disk stay known. It reports false,
// and does nothing, while a request or a write uses one.
func (k *Keeper) Unload() bool {
	k.collect()
	busy := false
	var leaving []*memory.Point
	k.index.Points(func(p *memory.Point) {
		busy = busy || k.index.Pinned(p)
		if p.In(memory.InMemory) {
			leaving = append(leaving, p)
		}
	})
	if busy {
		return false
	}
	for _, p := range leaving {
		k.free(memory.InMemory, []memory.Gone{k.index.Release(p, memory.InMemory, memory.LostEvicted)})
	}
	k.publish()
	return true
}

// Drop releases the states in memory that no request and no write uses, and reports how many. Points on disk stay
// known.
func (k *Keeper) Drop() int {
	k.collect()
	var leaving []*memory.Point
	k.index.Points(func(p *memory.Point) {
		if p.In(memory.InMemory) && !k.index.Pinned(p) {
			leaving = append(leaving, p)
		}
	})
	for _, p := range leaving {
		k.free(memory.InMemory, []memory.Gone{k.index.Release(p, memory.InMemory, memory.LostEvicted)})
	}
	k.count(func(c *Counters) { c.Evicted += len(leaving) })
	k.publish()
	return len(leaving)
}

// Clear forgets every point, in memory and on disk, and every reply. It waits for running writes and until the files
// are deleted. No request may be running.
func (k *Keeper) Clear() {
	if k.opt.Disk != nil {
		k.opt.Disk.Flush()
		k.collect()
		k.opt.Disk.ForgetReplies()
	}
	var all []*memory.Point
	k.index.Points(func(p *memory.Point) { all = append(all, p) })
	for _, p := range all {
		for _, t := range []memory.Tier{memory.InMemory, memory.OnDisk} {
			if p.In(t) {
				k.free(t, []memory.Gone{k.index.Release(p, t, memory.LostEvicted)})
			}
		}
	}
	if k.opt.Disk != nil {
		k.opt.Disk.Flush()
	}
	k.unwritten = nil
	k.replies.Forget()
	k.index = k.emptyIndex() // forgets the texts too
	k.publish()
}

// readDisk adds the points that earlier runs left. Those of another key are added too: they are not used, but named
// when they would have served, and they are evicted first.
func (k *Keeper) readDisk() {
	found := k.opt.Disk.Found()
	slices.SortFunc(found, func(a, b disk.Found) int { return len(a.IDs) - len(b.IDs) })
	for _, f := range found {
		c := k.index.Open(nil)
		if below := k.index.Below(f.Key, f.IDs); below != nil && below.Kind != memory.KindSystem {
			c = below.Conversation()
		}
		if f.Resumed {
			c.Resume()
		}
		gone, ok := k.index.Room(memory.OnDisk, f.Cost, c.Claim())
		k.free(memory.OnDisk, gone)
		if ok {
			k.index.Add(f.Key, f.IDs, nil, f.Kind, c, memory.OnDisk, f.Cost)
		} else {
			k.opt.Disk.Remove(f.Key, f.IDs, k.index.Unheld(memory.OnDisk, f.Cost.Pages))
		}
	}
	k.opt.Disk.Replies(func(r memory.Reply) { k.replies.Remember(r) })
}

package keep

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway/engine/memory"
)

// chat is one conversation of the double: ids from 100 on are text, the small ones are the format's.
type chat struct{ ids []int32 }

const (
	userOpens  = 1
	turnEnds   = 2
	replyOpens = 3
	systemID   = 4
)

func (c *chat) prompt(user []int32) ([]int32, Marks) {
	ids := slices.Concat(c.ids, []int32{userOpens}, user, []int32{turnEnds, replyOpens, replyOpens})
	m := Marks{Reply: len(ids)}
	for at, id := range c.ids {
		if id == turnEnds {
			m.Said = at // the last turn of what was before is a reply
		}
	}
	for i := range ids[:len(ids)-1] {
		if ids[i] == replyOpens && ids[i+1] == replyOpens {
			m.Turns = append(m.Turns, i)
		}
	}
	if at := slices.Index(ids, userOpens); at > 0 {
		m.System = at
	}
	return ids, m
}

func text(r *rand.Rand, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = 100 + int32(r.IntN(50))
	}
	return out
}

// Random histories over several conversations that share system prompts, with little memory and disk, so that
// everything is evicted, read back, thinned and lost at some time: no wrong state is ever restored, and the prompt is
// always what was cached plus what was computed. Between them the process ends, cleanly or not, and its files are torn.
func TestRandomHistoriesNeverRestoreAWrongState(t *testing.T) {
	histories, steps := 1000, 12
	if os.Getenv("SLIPWAY_SOAK") != "" {
		histories = 10_000
	}
	hits, fromDisk, damaged := 0, 0, 0
	const perWorld = 250
	for batch := range histories / perWorld {
		r := rand.New(rand.NewPCG(uint64(batch), 3))
		disk := int64(0)
		if batch%3 == 0 {
			disk = 64<<10 + testReplies + int64(2000+r.IntN(40_000))
		}
		w := newWorld(t, 2+r.IntN(12), 10+r.IntN(100), disk)
		systems := [][]int32{append([]int32{systemID}, text(r, 40)...), append([]int32{systemID}, text(r, 70)...), nil}
		for range perWorld {
			c := &chat{slices.Clone(systems[r.IntN(3)])}
			var before []int32 // before the last turn
			var lastUser []int32
			for range steps {
				switch action := r.IntN(12); {
				case action < 6 || lastUser == nil: // append
					lastUser, before = text(r, 1+r.IntN(60)), slices.Clone(c.ids)
				case action == 6: // edit the last message
					c.ids, lastUser = slices.Clone(before), append(slices.Clone(lastUser), text(r, 3)...)
				case action == 7: // regenerate
					c.ids = slices.Clone(before)
				case action == 8 && len(c.ids) > 0: // edit early
					at := r.IntN(len(c.ids))
					c.ids[at] += 1000
					before = slices.Clone(c.ids[:min(len(before), len(c.ids))])
				case action == 9 && r.IntN(8) == 0: // idle
					if w.keeper.Unload() && len(w.keeper.states) > 0 {
						t.Fatal("states are left after Unload")
					}
				case action == 9 && r.IntN(8) == 0: // memory is short: only what is being written stays
					w.keeper.Drop()
					w.keeper.index.Points(func(p *memory.Point) {
						if p.In(memory.InMemory) && !w.keeper.index.Pinned(p) {
							t.Fatal("a point that nothing uses is left after Drop")
						}
					})
				case action == 9 || action == 8: // another conversation in between
					other, marks := (&chat{slices.Clone(systems[r.IntN(3)])}).prompt(text(r, 20))
					w.request(other, marks, text(r, 5), EndWhole, -1)
				case action == 10 && r.IntN(4) == 0: // stop and start
					w.restart()
				case action == 11 && disk > 0 && r.IntN(6) == 0: // tear or flip a file
					w.restartDamaged(r)
				}
				prompt, marks := c.prompt(lastUser)
				if len(prompt) > 1500 {
					break
				}
				reply := append(text(r, 1+r.IntN(30)), turnEnds)
				how, limit := EndWhole, -1
				switch r.IntN(5) {
				case 0:
					how, reply = EndCancelled, reply[:r.IntN(len(reply))]
				case 1:
					how, limit = EndCancelled, r.IntN(80)
				case 2:
					how = EndCut
				}
				o := w.request(prompt, marks, reply, how, limit)
				if limit < 0 && o.cached+o.computed != len(prompt) {
					t.Fatalf("cached %d + computed %d of %d", o.cached, o.computed, len(prompt))
				}
				e := o.visit.Report.Explanation
				if e.Cached != o.cached || e.Cached+e.Again+e.New != len(prompt) {
					t.Fatalf("explained as %+v, cached %d", e, o.cached)
				}
				if how == EndCancelled && r.IntN(2) == 0 {
					reply = reply[:r.IntN(len(reply)+1)] // less arrived than was streamed
				}
				c.ids = slices.Concat(prompt, reply)
				w.checkCaps(r.IntN(10) == 0)
			}
		}
		counters := w.counters()
		hits += counters.Hits
		fromDisk += counters.FromDisk
		damaged += counters.Damaged
		for p, s := range w.keeper.states {
			if *s.(fakeState).released || !p.In(memory.InMemory) {
				t.Fatal("a point in memory has no state")
			}
		}
	}
	if hits == 0 || fromDisk == 0 || damaged == 0 {
		t.Fatalf("%d hits, %d from disk, %d damaged: the histories did not reach everything", hits, fromDisk, damaged)
	}
}

func (w *world) checkCaps(disk bool) {
	w.t.Helper()
	u := w.keeper.Usage(memory.InMemory)
	if u.OwnBytes > w.budget.OwnBytes || u.Pages > w.budget.Pages {
		w.t.Fatalf("memory holds %+v of %+v", u, w.budget)
	}
	if w.store == nil || !disk {
		return
	}
	if used := folderBytes(w.t, w.dir); used > w.diskCap {
		w.t.Fatalf("%d bytes on disk of %d", used, w.diskCap)
	}
}

func folderBytes(t *testing.T, dir string) (total int64) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// restartDamaged stops, tears or flips a random file, and starts again; or damages it while the server runs.
func (w *world) restartDamaged(r *rand.Rand) {
	w.t.Helper()
	running := r.IntN(2) == 0
	if !running {
		w.store.Close(1 << 40)
		w.store = nil
	}
	sub := []string{"points", "pages"}[r.IntN(2)]
	files, err := filepath.Glob(filepath.Join(w.dir, sub, "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(files) > 0 {
		path := files[r.IntN(len(files))]
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 {
			if r.IntN(2) == 0 {
				os.Truncate(path, int64(r.IntN(len(data))))
			} else if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				at := r.IntN(len(data))
				f.WriteAt([]byte{data[at] ^ byte(1<<r.IntN(8))}, int64(at))
				f.Close()
			}
		}
	}
	if running {
		w.keeper.forgetMemory()
	} else {
		w.start()
	}
}

// forgetMemory drops every point from memory that is on disk too, so that the next request reads its file.
func (k *Keeper) forgetMemory() {
	k.collect()
	var gone []memory.Gone
	k.index.Points(func(p *memory.Point) {
		if p.In(memory.InMemory) && p.In(memory.OnDisk) && !k.index.Pinned(p) {
			gone = append(gone, k.index.Release(p, memory.InMemory, memory.LostEvicted))
		}
	})
	k.free(memory.InMemory, gone)
}

// A conversation fills the budget, then another begins: its first turn is not kept, which is said, and its second is.
func TestNewConversationIsKeptOnceItIsResumed(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	w := newWorld(t, 3, 20, 0) // pages of 320 tokens
	old, next := &chat{}, &chat{}
	turn := func(c *chat, n int) outcome {
		prompt, marks := c.prompt(text(r, n))
		reply := append(text(r, 2), turnEnds)
		o := w.request(prompt, marks, reply, EndWhole, -1)
		c.ids = slices.Concat(prompt, reply)
		return o
	}
	turn(old, 250)
	turn(old, 10)
	if o := turn(next, 100); o.cached != 0 || w.keeper.Counters().Refused == 0 {
		t.Fatalf("%d cached, %d refused: the budget is not what the test needs", o.cached, w.keeper.Counters().Refused)
	}
	if o := turn(next, 10); o.cached != 0 || o.visit.Report.Explanation.Cause != memory.CauseNoRoom {
		t.Fatalf("%d cached, explained by %q", o.cached, o.visit.Report.Explanation.Cause)
	}
	if o := turn(next, 10); o.cached < 110 {
		t.Fatalf("%d tokens of a resumed conversation were restored", o.cached)
	}
}

// A budget of three points in memory and of about as many, pages included, on disk, and 500 one-off prompts between the
// turns of a conversation.
func TestFloodOfOneOffPromptsLeavesAConversationThatWasRestored(t *testing.T) {
	// pages are dearer than points there: it holds one conversation, and no one-off beside it
	const tight = 64<<10 + testReplies + 18_000
	for _, c := range []struct {
		name     string
		disk     int64
		restarts bool
		share    int // of what is known, in percent, that must be restored
	}{{"memory alone", 0, false, 50}, {"with a disk that it fills", tight, false, 70},
		{"with a disk that it fills, after a restart", tight, true, 70}} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, 11))
			w := newWorld(t, 3, 200, c.disk)
			conversation := &chat{}
			turn := func() outcome {
				prompt, marks := conversation.prompt(text(r, 80))
				reply := append(text(r, 10), turnEnds)
				o := w.request(prompt, marks, reply, EndWhole, -1)
				conversation.ids = slices.Concat(prompt, reply)
				return o
			}
			turn()
			turn() // restored once
			for round := range 3 {
				if c.restarts {
					w.restart()
				}
				for range 500 {
					prompt, marks := (&chat{}).prompt(text(r, 100))
					w.request(prompt, marks, append(text(r, 8), turnEnds), EndWhole, -1)
					w.checkCaps(false)
				}
				w.checkCaps(true)
				before := len(conversation.ids)
				if o := turn(); o.cached*100 < before*c.share {
					t.Fatalf("round %d: %d of %d known tokens were restored", round, o.cached, before)
				}
			}
		})
	}
}

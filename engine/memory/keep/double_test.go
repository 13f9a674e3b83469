package keep

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"slipway/engine/memory"
	"slipway/engine/memory/disk"
	"slipway/engine/pass"
)

// The device double: a state is the hash of its history, and a position's keys and values are the hash of the history
// up to it. Whatever is restored wrongly shows as another hash.

const (
	pageTokens = 16
	tapeKeep   = 12
	tapeBase   = 4 // the double's base moves every so many tokens beyond
	stateBytes = 16
)

func mix(h uint64, id int32) uint64 { return (h ^ uint64(uint32(id))) * 0x9e3779b97f4a7c15 >> 1 }

func hashes(ids []int32) []uint64 {
	out := make([]uint64, len(ids))
	h := uint64(1)
	for i, id := range ids {
		h = mix(h, id)
		out[i] = h
	}
	return out
}

// fakeState is what a sequence was. at is the hash after each position.
type fakeState struct {
	t        *testing.T
	at       []uint64 // up to reach
	base     int
	pages    []int32
	released *bool
}

func (s fakeState) Len() int          { return s.base }
func (s fakeState) Reach() int        { return len(s.at) }
func (s fakeState) Pages() []int32    { return s.pages }
func (s fakeState) Hidden() []float32 { return nil }
func (s fakeState) Release() {
	if *s.released {
		s.t.Error("a state is released twice")
	}
	*s.released = true
}
func (s fakeState) Settle(at int) (pass.State, error) {
	return fakeState{s.t, s.at[:at], at, s.pages, new(bool)}, nil
}
func (s fakeState) ReadState(dst []byte) {
	if *s.released {
		s.t.Error("a released state is read")
	}
	binary.LittleEndian.PutUint64(dst, s.at[len(s.at)-1])
	binary.LittleEndian.PutUint64(dst[8:], uint64(len(s.at)))
}
func (s fakeState) ReadPage(dst []byte, index, tokens int) {
	for i := range tokens {
		binary.LittleEndian.PutUint64(dst[8*i:], s.at[index*pageTokens+i])
	}
}

type fakeNetwork struct {
	t     *testing.T
	pages int32 // handed out so far; pages are never used again, so that a mix-up shows
}

func (n *fakeNetwork) importState(tokens int, state []byte, _ disk.Draft, near pass.State, shared int,
	page func(int, int) ([]byte, error)) (pass.State, error) {
	s := fakeState{n.t, nil, tokens, nil, new(bool)}
	if shared > 0 {
		s.pages = slices.Clone(near.Pages()[:shared])
		s.at = slices.Clone(near.(fakeState).at[:shared*pageTokens])
	}
	for i := shared; i*pageTokens < tokens; i++ {
		held := min(pageTokens, tokens-i*pageTokens)
		data, err := page(i, held)
		if err != nil {
			return nil, err
		}
		for j := range held {
			s.at = append(s.at, binary.LittleEndian.Uint64(data[8*j:]))
		}
		n.pages++
		s.pages = append(s.pages, n.pages)
	}
	if int(binary.LittleEndian.Uint64(state[8:])) != tokens || s.at[tokens-1] != binary.LittleEndian.Uint64(state) {
		return nil, errors.New("state and positions are of two histories")
	}
	return s, nil
}

// fakeSequence implements Sequence.
type fakeSequence struct {
	n     *fakeNetwork
	at    []uint64
	pages []int32
	base  int // of the tape
}

func (s *fakeSequence) Len() int     { return len(s.at) }
func (s *fakeSequence) TapeLen() int { return len(s.at) - s.base }
func (s *fakeSequence) Close()       {}
func (s *fakeSequence) Rewind(n int) {
	if n > s.TapeLen() {
		s.n.t.Fatalf("%d tokens are taken back of %d", n, s.TapeLen())
	}
	s.at = s.at[:len(s.at)-n]
	s.pages = s.pages[:(len(s.at)+pageTokens-1)/pageTokens]
}
func (s *fakeSequence) Pages() []int32 { return slices.Clone(s.pages) }

func (s *fakeSequence) forward(ids []int32) {
	for _, id := range ids {
		h := uint64(1)
		if len(s.at) > 0 {
			h = s.at[len(s.at)-1]
		}
		if len(s.at)%pageTokens == 0 {
			s.n.pages++
			s.pages = append(s.pages, s.n.pages)
		}
		s.at = append(s.at, mix(h, id))
	}
	if len(ids) > 1 {
		s.base = len(s.at)
	} else if s.TapeLen() > tapeKeep+tapeBase {
		s.base = len(s.at) - tapeKeep
	}
}

func (s *fakeSequence) Save(tape bool) (pass.State, error) {
	base := len(s.at)
	if tape {
		base = s.base
	}
	return fakeState{s.n.t, slices.Clone(s.at), base, slices.Clone(s.pages), new(bool)}, nil
}

func (s *fakeSequence) Restore(state pass.State, at int) {
	f := state.(fakeState)
	if *f.released || at < f.base || at > len(f.at) {
		s.n.t.Fatalf("restored at %d from [%d,%d], released %v", at, f.base, len(f.at), *f.released)
	}
	s.at, s.base = slices.Clone(f.at[:at]), at
	s.pages = slices.Clone(f.pages[:(at+pageTokens-1)/pageTokens])
}

// world is a keeper over the double, which can be stopped and started again.
type world struct {
	t       *testing.T
	net     *fakeNetwork
	keeper  *Keeper
	store   *disk.Store
	dir     string
	now     time.Time
	budget  memory.Budget
	diskCap int64
	daily   int64
	key     memory.Key
	total   Counters // of keepers before the last restart
}

const testReplies = 64 << 10

func newWorld(t *testing.T, points, pages int, diskCap int64) *world {
	w := &world{t: t, net: &fakeNetwork{t: t}, dir: t.TempDir() + "/cache", now: time.Unix(1_800_000_000, 0),
		diskCap: diskCap,
		budget: memory.Budget{OwnBytes: int64(points) * stateBytes, Pages: pages, TotalBytes: math.MaxInt64,
			PageBytes: 8 * pageTokens},
		key: memory.Key{Model: "double", Policy: memory.Policy{Name: "exact"}}}
	w.start()
	t.Cleanup(func() {
		if w.store != nil {
			w.store.Close(time.Minute)
		}
	})
	return w
}

func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	opt := Options{Key: w.key, PointBytes: stateBytes, TapeTokenBytes: 1, PageTokens: pageTokens, WindowTokens: 2000,
		ChunkTokens: 32, Memory: w.budget,
		ReplyBytes: testReplies, WorthReading: 1, Decode: func([]int32) string { return "" }, Log: log,
		Import: w.net.importState}
	if w.diskCap > 0 {
		var err error
		w.store, err = disk.Open(w.dir, disk.Options{CapBytes: w.diskCap, DailyBytes: w.daily, PageTokens: pageTokens,
			StateBytes: stateBytes,
			Positions:  func(n int) int64 { return int64(8 * n) }, ReplyBytes: testReplies, Now: func() time.Time {
				return w.now
			}, Log: log})
		if err != nil {
			w.t.Fatal(err)
		}
		opt.Disk = w.store
	}
	w.total = w.counters()
	w.keeper = New(opt)
}

// counters are those of all keepers so far.
func (w *world) counters() Counters {
	if w.keeper == nil {
		return w.total
	}
	c := w.keeper.Counters()
	return Counters{Hits: w.total.Hits + c.Hits, FromDisk: w.total.FromDisk + c.FromDisk, Damaged: w.total.Damaged +
		c.Damaged}
}

// restart is a clean stop, or a kill where the background has written what it had.
func (w *world) restart() {
	w.t.Helper()
	if w.store != nil {
		w.keeper.WritePending(time.Minute)
		w.store.Close(time.Minute)
		w.store = nil
	}
	w.start()
}

// outcome of one request.
type outcome struct {
	cached, computed int
	visit            *Visit
	processed        []int32
}

// request runs a prompt through the keeper. reply ids are decoded one by one; the last of them is sampled but not
// processed. cancelAt >= 0 stops after so many prompt tokens are prefilled (whole chunks), or after all with so many
// reply tokens.
func (w *world) request(prompt []int32, marks Marks, reply []int32, how Ending, prefillLimit int) outcome {
	w.t.Helper()
	seq := &fakeSequence{n: w.net}
	v := w.keeper.Admit(prompt, marks, seq)
	o := outcome{cached: seq.Len(), visit: v}
	want := hashes(prompt)
	if o.cached > 0 && (o.cached >= len(prompt) || seq.at[o.cached-1] != want[o.cached-1]) {
		w.t.Fatalf("a wrong state was restored at %d of %d", o.cached, len(prompt))
	}
	done := o.cached
	for done < len(prompt) {
		if prefillLimit >= 0 && o.computed >= prefillLimit {
			v.End(EndCancelled, nil)
			o.processed = prompt[:done]
			return o
		}
		n := v.Next(min(32, len(prompt)-done))
		seq.forward(prompt[done : done+n])
		v.Processed(prompt[done : done+n])
		done += n
		o.computed += n
	}
	for i := range reply[:max(0, len(reply)-1)] {
		seq.forward(reply[i : i+1])
		v.Processed(reply[i : i+1])
	}
	v.End(how, reply)
	o.processed = append(slices.Clone(prompt), reply[:max(0, len(reply)-1)]...)
	return o
}

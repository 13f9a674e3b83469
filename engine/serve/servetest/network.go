// Package servetest is a network for tests of the server: its reply to a token sequence is a function of the tokens,
// and every pass can be watched, held or broken.
package servetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"slipway/engine/device"
	"slipway/engine/pass"
	"slipway/engine/sample"
)

// ErrNoRoom is what NewSequence gives beyond Sequences.
var ErrNoRoom = errors.New("no room for another sequence")

// Network implements serve.Network. Set its fields before use.
type Network struct {
	Vocab, Window, Chunk int
	Sequences            int // the most at once; 0 means any number
	Tape                 int // latest tokens that a sequence can take back

	// Next gives the likeliest token after history. The others are less likely the farther their id is from it.
	Next func(history []int32) int32

	// Pass is called before each pass, in the engine's goroutine; what it returns is the pass's error. It may block and
	// panic.
	Pass func(segments []pass.Segment) error

	// Prefill, when not nil, is called in each pass that begins with more than one token, with the pass's context.
	Prefill func(ctx context.Context) error

	// Return, when not nil, is called when pages are to be given back to the system.
	Return func() error

	// NaN, when not nil, gives the id whose logit is no number after history.
	NaN func(history []int32) int32

	// Choose makes it a network whose device chooses; else Best is empty.
	Choose bool
	best   [][]sample.Top // of the latest pass, by segment and row
	chosen atomic.Int64

	open   atomic.Int64
	passes atomic.Int64
	busy   sync.Mutex
}

// Open is the number of sequences not closed.
func (n *Network) Open() int { return int(n.open.Load()) }

// Passes is the number of passes begun.
func (n *Network) Passes() int { return int(n.passes.Load()) }

// Chosen is the number of rows of which the largest were chosen.
func (n *Network) Chosen() int { return int(n.chosen.Load()) }

// Best implements serve.Network.
func (n *Network) Best(segment, row int) sample.Top { return n.best[segment][row] }

// Sleep and Wake do nothing.
func (n *Network) Sleep()      {}
func (n *Network) Wake() error { return nil }

// choose gives the k largest of a row, of equal ones the smallest id first; none of a row with a NaN.
func (n *Network) choose(row []float32, k int) (top sample.Top) {
	if !n.Choose || k == 0 {
		return top
	}
	n.chosen.Add(1)
	ids := make([]int32, len(row))
	for id := range ids {
		ids[id] = int32(id)
	}
	sort.SliceStable(ids, func(a, b int) bool { return row[ids[a]] > row[ids[b]] })
	top.IDs = ids[:k]
	for _, id := range top.IDs {
		top.Logits = append(top.Logits, row[id])
	}
	if slices.ContainsFunc(row, func(v float32) bool { return v != v }) {
		for i := range top.IDs {
			top.IDs[i], top.Logits[i] = -1, float32(math.NaN())
		}
	}
	return top
}

func (n *Network) VocabSize() int    { return n.Vocab }
func (n *Network) WindowTokens() int { return n.Window }
func (n *Network) ChunkTokens() int  { return n.Chunk }

type sequence struct {
	n      *Network
	tokens []int32
	tape   int // latest tokens that can be taken back
	closed bool
}

func (s *sequence) Len() int       { return len(s.tokens) }
func (s *sequence) Pages() []int32 { return nil }
func (s *sequence) TapeLen() int   { return s.tape }

func (s *sequence) Rewind(tokens int) {
	if tokens < 0 || tokens > s.tape {
		panic(fmt.Sprintf("servetest: %d tokens are taken back of a tape of %d", tokens, s.tape))
	}
	s.tokens, s.tape = s.tokens[:len(s.tokens)-tokens], s.tape-tokens
}

func (s *sequence) Save(tape bool) (pass.State, error) {
	base := len(s.tokens)
	if tape {
		base -= s.tape
	}
	return &state{tokens: slices.Clone(s.tokens), base: base}, nil
}

func (s *sequence) Restore(from pass.State, at int) {
	st := from.(*state)
	if st.released || at < st.base || at > len(st.tokens) {
		panic(fmt.Sprintf("servetest: restored at %d of [%d,%d], released %v", at, st.base, len(st.tokens),
			st.released))
	}
	s.tokens, s.tape = slices.Clone(st.tokens[:at]), at-st.base
}

// state is a saved sequence: its tokens. It cannot be written to disk.
type state struct {
	tokens   []int32
	base     int
	released bool
}

func (s *state) Len() int       { return s.base }
func (s *state) Reach() int     { return len(s.tokens) }
func (s *state) Pages() []int32 { return nil }
func (s *state) Settle(at int) (pass.State, error) {
	return &state{tokens: s.tokens[:at], base: at}, nil
}
func (s *state) ReadState(dst []byte)                   {}
func (s *state) ReadPage(dst []byte, index, tokens int) {}
func (s *state) Hidden() []float32                      { return nil }
func (s *state) Release()                               { s.released = true }

func (s *sequence) Close() {
	if s.closed {
		panic("servetest: a sequence is closed twice")
	}
	s.closed = true
	s.n.open.Add(-1)
}

// NewSequence begins an empty sequence.
func (n *Network) NewSequence() (pass.Sequence, error) {
	if n.Sequences > 0 && n.Open() >= n.Sequences {
		return nil, ErrNoRoom
	}
	n.open.Add(1)
	return &sequence{n: n}, nil
}

// ReturnPages may not meet a pass.
func (n *Network) ReturnPages() error {
	if !n.busy.TryLock() {
		panic("servetest: pages are given back during a pass")
	}
	defer n.busy.Unlock()
	if n.Return == nil {
		return nil
	}
	return n.Return()
}

// Forward breaks the test's process when two goroutines use the network at once, when a segment is empty or closed, or
// when a sequence outgrows the window.
func (n *Network) Forward(ctx context.Context, segments []pass.Segment) ([][][]float32, error) {
	if !n.busy.TryLock() {
		panic("servetest: two passes at once")
	}
	defer n.busy.Unlock()
	n.passes.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n.Pass != nil {
		if err := n.Pass(segments); err != nil {
			return nil, err
		}
	}
	if n.Prefill != nil && len(segments[0].Tokens) > 1 {
		if err := n.Prefill(ctx); err != nil {
			return nil, err
		}
	}
	out := make([][][]float32, len(segments))
	n.best = make([][]sample.Top, len(segments))
	for i, segment := range segments {
		seq := segment.Seq.(*sequence)
		if seq.closed || len(segment.Tokens) == 0 || len(seq.tokens)+len(segment.Tokens) > n.Window {
			panic(fmt.Sprintf("servetest: closed %v, %d tokens after %d", seq.closed, len(segment.Tokens),
				len(seq.tokens)))
		}
		for t, id := range segment.Tokens {
			seq.tokens = append(seq.tokens, id)
			if segment.Logits == pass.LogitsAll || segment.Logits == pass.LogitsLast && t == len(segment.Tokens)-1 {
				row := n.logits(seq.tokens)
				out[i], n.best[i] = append(out[i], row), append(n.best[i], n.choose(row, segment.Top))
			}
		}
		if seq.tape += len(segment.Tokens); len(segment.Tokens) > device.TapeSegment {
			seq.tape = 0
		}
		seq.tape = min(seq.tape, n.Tape)
	}
	return out, nil
}

// logits puts 10 on the next token and 10 less its distance on every other one.
func (n *Network) logits(history []int32) []float32 {
	best := n.Next(history)
	row := make([]float32, n.Vocab)
	for id := range row {
		distance := int32(id) - best
		if distance < 0 {
			distance = -distance
		}
		row[id] = 10 - float32(distance)
	}
	if n.NaN != nil {
		row[n.NaN(history)] = float32(math.NaN())
	}
	return row
}

// Package pass is the vocabulary that the network, the queue and the cache share: a pass advances some sequences, each
// by a segment of tokens; a sequence can be saved as a state and brought back from one. It holds types alone.
package pass

import "slipway/engine/device"

// Segment is one sequence's share of a pass: its next tokens, and what is wanted of their rows.
type Segment struct {
	Seq    Sequence
	Tokens []int32 // at least one
	Logits Logits

	// Top is how many of the largest logits of each wanted row decide, for Best of the network; 0: the whole row is
	// read.
	Top int

	// Hidden, when not nil, receives the rows after the final norm, [len(Tokens), hidden size]: the input of a draft's
	// head.
	Hidden []float32

	// Taps, when not nil, receives the outputs of the layers that the network was loaded with taps of, side by side,
	// [rows, taps·hidden size]: of the segment's last rows, as many as it holds.
	Taps []float32

	// Policy is the approximate prefill; zero is exact. Its DenseFrom is an absolute position.
	Policy device.AttentionPolicy
}

// Section is what a draft beside the network knows of a sequence, so that states can carry it: rows of the positions
// from First on. It is not changed once it was given.
type Section struct {
	First int
	Rows  []byte // nil: nothing is known
}

// HeadSegment is some next slots of one sequence's MTP head. Slot S pairs the final hidden row of position S with token
// S+1 and predicts token S+2.
type HeadSegment struct {
	Seq Sequence
	// Slot is the first slot. Less than the slots that there are drops those from there on (rejected drafts). More
	// begins anew there: the earlier ones are dropped, and the head sees nothing of them.
	Slot int
	// Tokens are tokens Slot+1, Slot+2, ...
	Tokens []int32
	// Hidden are the rows Slot, Slot+1, ..., [len(Tokens), hidden size]: from a pass, or HiddenOut of the head when it
	// runs deeper.
	Hidden []float32
	Logits Logits
	// HiddenOut, when not nil, receives the head's own final rows, [len(Tokens), hidden size].
	HiddenOut []float32
}

// Logits says which rows of logits a segment asks for.
type Logits int

const (
	LogitsNone Logits = iota // no row
	LogitsLast               // the row after the last token
	LogitsAll                // a row after each token
)

// Rows is how many rows of logits the segment asks for.
func (s Segment) Rows() int {
	switch s.Logits {
	case LogitsLast:
		return 1
	case LogitsAll:
		return len(s.Tokens)
	}
	return 0
}

// Sequence is one token sequence in the network. It is used by one goroutine at a time.
type Sequence interface {
	Len() int       // tokens processed
	Pages() []int32 // attention pages that a state saved now would refer to, a copy

	// TapeLen is how many of the latest tokens Rewind can take back, and a state saved with a tape covers.
	TapeLen() int
	// Rewind takes the last tokens back, tokens in [0, TapeLen]: the sequence is what it was before them, bit for bit.
	Rewind(tokens int)

	// Save keeps the sequence as it is now; with tape also every length that its tape covers. The caller releases the
	// state.
	Save(tape bool) (State, error)
	// Restore brings the sequence to the state after at tokens, in [Len, Reach] of a state of the same network.
	Restore(s State, at int)

	Close() // gives its memory back; may be called twice
}

// State is a saved sequence. ReadState, ReadPage and Hidden may run beside passes.
type State interface {
	Len() int       // tokens before its tape
	Reach() int     // the longest length that it can be brought to: Len plus its tape
	Pages() []int32 // attention pages that it refers to, up to its reach; not to be changed

	// Settle gives the same without a tape after at tokens, in [Len, Reach]: what a file holds. The caller releases it.
	Settle(at int) (State, error)

	ReadState(dst []byte)                   // the recurrent state after Len tokens, whole
	ReadPage(dst []byte, index, tokens int) // the first tokens positions of the page at index
	// final row of the last token, for a draft's head; empty where it is not known
	Hidden() []float32

	Release() // gives its memory back, once
}

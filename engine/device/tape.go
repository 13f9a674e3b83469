package device

// TapedState is a State that can go back. While it records, it keeps what the latest tokens of short segments did to it: per
// token and layer α, β, the normed keys, the values and the rows before the convolution, over a base, the state before the
// first of them. Going back is the base and a replay of the recurrence with the device's own step, so it gives the bits that
// were there. (δ is computed again from the values instead of kept: it takes as much memory, and one kernel serves both.)
//
// A segment longer than TapeSegment is a prefill: it empties the tape. None of the methods may run during a pass.
type TapedState interface {
	State
	// Record begins to keep the latest tokens; at least tokens of them stay once as many came. 0 ends it.
	Record(tokens int) error
	// TapeLen is how many tokens can be taken back now.
	TapeLen() int
	// Rewind takes the last n tokens back, n in [0, TapeLen].
	Rewind(n int)
	// CutTape copies the base and what was kept since; nil without a tape. The caller releases both.
	CutTape() (base State, tape Tape, err error)
	// Replay advances the state by the first n tokens of a tape whose base it equals.
	Replay(tape Tape, n int)
}

// Tape is what tokens did to a state.
type Tape interface {
	Len() int // tokens
	Bytes() int64
	Release()
}

// TapeSegment is the longest segment that is recorded: decode, and the rows of a verification.
const TapeSegment = 16

package device

// TapedState is a State that can be rewound. While it records, it keeps the effect of the latest tokens of short segments: per
// token and layer α, β, the normed keys, the values and the rows before the convolution. The base is the state before the
// first of them. A rewind copies the base and replays the recurrence with the device's own step, so it gives the same bits
// as before. (δ is computed again from the values instead of kept: it takes as much memory, and one kernel serves both.)
//
// A segment longer than TapeSegment is a prefill: it empties the tape. None of the methods may run during a pass.
type TapedState interface {
	State
	// Record begins to keep the latest tokens, at least this many of them. 0 ends it.
	Record(tokens int) error
	// TapeLen is how many tokens can be rewound now.
	TapeLen() int
	// Rewind undoes the last n tokens, n in [0, TapeLen].
	Rewind(n int)
	// CutTape copies the base and the tape; nil without a tape. The caller releases both.
	CutTape() (base State, tape Tape, err error)
	// Replay advances the state by the first n tokens of a tape whose base it equals.
	Replay(tape Tape, n int)
}

// Tape is the effect of some tokens on a state.
type Tape interface {
	Len() int // tokens
	Bytes() int64
	Release()
}

// TapeSegment is the longest segment that is recorded: decode, and the rows of a verification.
const TapeSegment = 16

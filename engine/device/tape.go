package device

// Tape is the effect of some tokens on a state. While a state records, it keeps the effect of the latest tokens of
// short segments: per token and layer α, β, the normed keys, the values and the rows before the convolution. The base
// is the state before the first of them. A rewind copies the base and replays the recurrence with the device's own
// step, so it gives the same bits as before. (δ is computed again from the values instead of kept: it takes as much
// memory, and one kernel serves both.) A segment longer than TapeSegment is a prefill: it empties the tape.
type Tape interface {
	Len() int // tokens
	Bytes() int64
	Release()
}

// TapeSegment is the longest segment that is recorded: decode, and the rows of a verification.
const TapeSegment = 16

package serve

import "context"

// Network is what this package needs of the model. Only the goroutine of [Engine.Run] calls NewSequence and Forward.
type Network interface {
	VocabSize() int    // rows of the logits; at least the tokenizer's ids
	WindowTokens() int // the most tokens that one sequence can hold
	ChunkTokens() int  // preferred number of prompt tokens a pass
	NewSequence() (Sequence, error)

	// Forward advances each segment's sequence by its tokens in one pass. Result i has no row, one row or len(Tokens) rows
	// of VocabSize values, as asked; they are valid until the next Forward. On error no sequence has moved. A prefill may
	// be stopped where ctx ends while it runs.
	Forward(ctx context.Context, segments []Segment) ([][][]float32, error)
}

// Sequence is the state of one token sequence in the network.
type Sequence interface {
	Len() int // tokens processed
	Close()   // gives its memory back
}

// Segment is one sequence's share of a pass.
type Segment struct {
	Seq    Sequence
	Tokens []int32
	Logits LogitsWanted
}

// LogitsWanted says which rows of logits a segment needs.
type LogitsWanted int

const (
	LogitsNone LogitsWanted = iota // no row
	LogitsLast                     // the row after the last token
	LogitsAll                      // a row after each token
)

// rows is how many rows of logits the segment asks for.
func (s Segment) rows() int {
	switch s.Logits {
	case LogitsLast:
		return 1
	case LogitsAll:
		return len(s.Tokens)
	}
	return 0
}

package serve

import (
	"context"

	"slipway/engine/sample"
)

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

// Choosing is a Network whose device can choose among logits. Best gives the largest of segment i's last row in the latest Forward, at least
// as many as its Top asked for, valid until the next; empty where nothing was chosen.
type Choosing interface {
	Network
	Best(i int) sample.Top
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
	Top    int // largest logits of the last row that decide, for Choosing; 0: the whole row
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

package serve

import (
	"context"

	"slipway/engine/pass"
	"slipway/engine/sample"
)

// Network is what this package needs of the model. Only the goroutine of [Engine.Run] calls what follows the sizes.
type Network interface {
	VocabSize() int    // rows of the logits; at least the tokenizer's ids
	WindowTokens() int // the most tokens that one sequence can hold
	ChunkTokens() int  // preferred number of prompt tokens a pass

	NewSequence() (pass.Sequence, error)

	// Forward advances each segment's sequence by its tokens in one pass. Result i has Rows rows of VocabSize values of
	// segment i; they are valid until the next Forward. On error no sequence has moved. A prefill may be stopped where
	// ctx ends while it runs.
	Forward(ctx context.Context, segments []pass.Segment) ([][][]float32, error)

	// Best gives the largest logits of one row of a segment in the latest Forward, at least as many as its Top asked
	// for, where the device can choose among logits; else it is empty. Valid until the next Best or Forward.
	Best(segment, row int) sample.Top

	// ReturnPages gives the memory of unreferenced pages back to the system.
	ReturnPages() error

	Sleep()      // gives back everything but its sizes, with no sequence open
	Wake() error // loads it again after Sleep; it may be tried again after an error
}

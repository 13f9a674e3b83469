package main

import (
	"context"

	"slipway/engine/model"
	"slipway/engine/serve"
)

// network shows the model to the queue.
type network struct {
	*model.Network
	segments []model.Segment // of the pass under way
}

func (n *network) VocabSize() int { return n.Config().VocabSize }

func (n *network) NewSequence() (serve.Sequence, error) {
	s, err := n.Network.NewSequence()
	if err != nil {
		return nil, err // never a nil sequence in a non-nil interface
	}
	return sequence{s}, nil
}

// wanted translates; the two packages number their constants on their own.
var wanted = map[serve.LogitsWanted]model.LogitsWanted{
	serve.LogitsNone: model.LogitsNone, serve.LogitsLast: model.LogitsLast, serve.LogitsAll: model.LogitsAll,
}

func (n *network) Forward(ctx context.Context, segments []serve.Segment) ([][][]float32, error) {
	n.segments = n.segments[:0]
	for _, s := range segments {
		n.segments = append(n.segments, model.Segment{Seq: s.Seq.(sequence).Sequence, Tokens: s.Tokens, Logits: wanted[s.Logits]})
	}
	return n.Network.Forward(ctx, n.segments)
}

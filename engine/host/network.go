package host

import (
	"context"
	"runtime/debug"
	"sync/atomic"

	"slipway/engine/model"
	"slipway/engine/model/arch"
	"slipway/engine/pass"
	"slipway/engine/sample"
)

// network is the model as serve.Network. Its sizes stay known while the model is unloaded.
type network struct {
	*model.Network       // nil while it sleeps
	config               *arch.Config
	vocab, window, chunk int
	load                 func() (*model.Network, error) // loads the same again
	unload               func()
	best                 []int32     // ids of the latest Best
	asleep               atomic.Bool // read by other goroutines
	gpu                  gpuTime
}

func (n *network) VocabSize() int    { return n.vocab }
func (n *network) WindowTokens() int { return n.window }
func (n *network) ChunkTokens() int  { return n.chunk }

// Sleep gives the memory of weights, pages and states back to the system.
func (n *network) Sleep() {
	n.asleep.Store(true)
	n.Network = nil
	n.unload()
	debug.FreeOSMemory()
}

func (n *network) Wake() (err error) {
	n.Network, err = n.load()
	n.asleep.Store(err != nil)
	return err
}

func (n *network) NewSequence() (pass.Sequence, error) {
	s, err := n.Network.NewSequence()
	if err != nil {
		return nil, err // never a nil sequence in an interface that is not nil
	}
	return s, nil
}

func (n *network) Forward(ctx context.Context, segments []pass.Segment) (rows [][][]float32, err error) {
	err = n.gpu.pass(segments, func() (err error) {
		rows, err = n.Network.Forward(ctx, segments)
		return err
	})
	return rows, explainPass(err)
}

// Best converts what the device chose.
func (n *network) Best(segment, row int) sample.Top {
	logits, ids := n.Network.Best(segment, row)
	n.best = n.best[:0]
	for _, id := range ids {
		n.best = append(n.best, int32(id))
	}
	return sample.Top{IDs: n.best, Logits: logits}
}

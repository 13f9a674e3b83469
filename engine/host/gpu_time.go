package host

import (
	"sync"

	"slipway/engine/pass"
	"slipway/wire"
)

// gpuTime adds up the GPU time of passes, by the GPU's own clock.
type gpuTime struct {
	now func() float64 // seconds of all passes so far; nil: there is no GPU

	mu  sync.Mutex // guards what follows: one writes, those who watch read
	all wire.GPU
}

// pass runs f, a pass of segments, and counts its GPU time, also if it fails or is stopped. A pass that advances a
// sequence by more than a token counts as prefill.
func (g *gpuTime) pass(segments []pass.Segment, f func() error) error {
	if g.now == nil {
		return f()
	}
	before := g.now()
	err := f()
	took := g.now() - before
	g.mu.Lock()
	defer g.mu.Unlock()
	phase := &g.all.Decode
	for _, s := range segments {
		if len(s.Tokens) > 1 {
			phase = &g.all.Prefill
		}
	}
	phase.Seconds += took
	phase.Passes++
	return err
}

// total is what was counted so far.
func (g *gpuTime) total() wire.GPU {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all
}

//go:build unix

package metal_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"slipway/engine/device"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/weights"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

// equalDispatches records n dispatches of the same cost. Each waits for the one before.
func equalDispatches(w *selftest.World, n int) device.Pass {
	x := w.Buffer(1, 256)
	p := w.Device.NewPass()
	p.Begin(selftest.Stateless(1))
	for range n {
		p.SwiGLU(x, x, x, 1)
	}
	return p
}

// The fake's clock says 50 ms for each dispatch: four fit into the bound, whatever the first estimate was.
func TestCommandBuffersAreBoundedInTime(t *testing.T) {
	clock := fake.Configuration{DispatchMicros: 50_000}
	d := open(t, clock, metal.Options{})
	p := equalDispatches(newWorld(t, d, 1), 40)
	for range 20 {
		if err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	fake.Configure(clock)
	before := d.GPUSeconds()
	if err := p.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	c := fake.Count()
	if c.Commits < 10 || c.Commits > 20 {
		t.Errorf("40 dispatches of 50 ms in %d command buffers, wanted 10 to 20", c.Commits)
	}
	if c.MostInFlight != 2 {
		t.Errorf("%d command buffers in flight, wanted 2", c.MostInFlight)
	}
	if took := d.GPUSeconds() - before; took < 1.99 || took > 2.01 {
		t.Errorf("the pass took %.3f s by the GPU's clock, wanted 2", took)
	}
}

// A prefill's attention over many positions is one operation that may take seconds. It is split by rows.
func TestLongAttentionIsSplitByRows(t *testing.T) {
	clock := fake.Configuration{DispatchMicros: 50_000, Threads: 2}
	d := open(t, clock, metal.Options{})
	o := about("attention_flash")[0]
	fake.Configure(clock)
	if what := check(o, d, 1); what != "" {
		t.Fatal(what)
	}
	before := fake.Count().Dispatches
	p := equalDispatches(newWorld(t, d, 1), 40)
	for range 20 { // the GPU's clock says that everything is slow
		if err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	fake.Configure(clock)
	if what := check(o, d, 1); what != "" {
		t.Errorf("in pieces: %s", what)
	}
	if after := fake.Count().Dispatches; after <= before {
		t.Errorf("%s: %d dispatches, %d where the GPU is fast", o.Name, after, before)
	}
}

// A product is split too: with many rows by rows, then by outputs; with one row by outputs. The bits stay the same.
func TestLongProductIsSplitWithTheSameBits(t *testing.T) {
	clock := fake.Configuration{DispatchMicros: 50_000, Threads: 2}
	for name, pieces := range map[string][2]uint64{ // of two products: where the GPU is fast, and slow
		"65 rows of [40,544] 8 bits by 32, scales bf16": {2, 12}, "33 rows of [33,96] f16": {2, 8},
		"33 rows of [40,64] 4 bits by 32, scales f16": {2, 8},
		// less than a tile
		"1 rows of [40,544] 8 bits by 32, scales bf16": {1, 4}, "1 rows of [9,5120] bf16": {1, 2},
		"10 rows of [9,256] 3 bits by 64, scales f16": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			all := slices.Concat(selftest.TileShapes(), selftest.Largest27B())
			at := slices.IndexFunc(all, func(o selftest.Operation) bool { return o.Name == name })
			if at < 0 {
				t.Fatal("there is no such operation")
			}
			d := open(t, clock, metal.Options{})
			run := func() (rows [][]float32, dispatches, commits uint64) {
				fake.Configure(clock)
				rows, err := all[at].Do(newWorld(t, d, 1))
				if err != nil {
					t.Fatal(err)
				}
				return rows, fake.Count().Dispatches, fake.Count().Commits
			}
			want, dispatches, _ := run()
			p := equalDispatches(newWorld(t, d, 1), 40)
			for range 20 { // the GPU's clock says that everything is slow
				if err := p.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			got, in, commits := run()
			if what := differ(got, want, 0); what != "" {
				t.Errorf("in pieces: %s", what)
			}
			if what := check(all[at], d, 1); what != "" {
				t.Errorf("in pieces: %s", what)
			}
			if dispatches != pieces[0] || in != pieces[1] || commits < in/2 {
				t.Errorf("%d dispatches in %d command buffers, %d where the GPU is fast, wanted %d", in, commits,
					dispatches, pieces)
			}
		})
	}
}

// ending is a context that ends after a number of calls of Err.
type ending struct {
	context.Context
	asks *int
}

func (c ending) Err() error {
	if *c.asks--; *c.asks < 0 {
		return context.Canceled
	}
	return nil
}

func (c ending) Done() <-chan struct{} { return make(chan struct{}) }

func TestStoppablePassEndsBetweenCommandBuffers(t *testing.T) {
	clock := fake.Configuration{DispatchMicros: 50_000}
	d := open(t, clock, metal.Options{})
	p := equalDispatches(newWorld(t, d, 1), 40)
	for range 20 {
		if err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	fake.Configure(clock)
	asks := 3 // before the pass, and after two command buffers
	err := p.(device.StoppablePass).RunStoppable(ending{context.Background(), &asks})
	var stopped *device.StoppedError
	if !errors.As(err, &stopped) || !errors.Is(err, context.Canceled) || fake.Count().Commits != 3 {
		t.Fatalf("%v after %d command buffers, wanted a StoppedError after 3", err, fake.Count().Commits)
	}
	asks = 3
	if err := p.Run(ending{context.Background(), &asks}); err != nil {
		t.Errorf("a pass that may not be stopped: %v", err)
	}
}

func TestNothingFollowsAFailedCommandBuffer(t *testing.T) {
	clock := fake.Configuration{DispatchMicros: 50_000}
	d := open(t, clock, metal.Options{})
	p := equalDispatches(newWorld(t, d, 1), 40)
	for range 20 {
		if err := p.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	clock.FailCommit = 1
	fake.Configure(clock)
	if err := p.Run(context.Background()); err == nil || fake.Count().Commits > 3 {
		t.Errorf("%v after %d command buffers, wanted an error after at most 3", err, fake.Count().Commits)
	}
}

// A cancelled prefill leaves the sequence unchanged: what follows has the same bits as without it.
func TestCancelledPrefillLeavesTheSequenceUnchanged(t *testing.T) {
	ckpt, err := weights.Open(pocket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	d := open(t, fake.Configuration{Threads: 2, DispatchMicros: 500_000}, metal.Options{})
	n, err := model.Load(d, ckpt, model.Options{WindowTokens: 256, MaxSequences: 1, ChunkTokens: 32})
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32(100 + 7*i)
	}
	answer := func(cancel bool) []float32 {
		s, err := n.NewSequence()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		forward := func(ctx context.Context, from, to int) ([][][]float32, error) {
			return n.Forward(ctx, []pass.Segment{{Seq: s, Tokens: tokens[from:to], Logits: pass.LogitsLast}})
		}
		if _, err := forward(context.Background(), 0, 20); err != nil {
			t.Fatal(err)
		}
		if cancel {
			before, asks := fake.Count().Commits, 6
			_, err := forward(ending{context.Background(), &asks}, 20, 40)
			if !errors.Is(err, context.Canceled) || fake.Count().Commits < before+2 || s.Len() != 20 {
				t.Fatalf("%v after %d command buffers at %d tokens", err, fake.Count().Commits-before, s.Len())
			}
		}
		rows, err := forward(context.Background(), 20, 40)
		if err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), rows[0][0]...)
	}
	want := answer(false)
	if what := differ([][]float32{answer(true)}, [][]float32{want}, 0); what != "" {
		t.Error(what)
	}
}

package host

import (
	"errors"
	"testing"

	"slipway/engine/pass"
	"slipway/wire"
)

func TestGPUTimeOfAFailedPassCounts(t *testing.T) {
	clock := 10.0
	g := gpuTime{now: func() float64 { return clock }}
	one, many, failed := pass.Segment{Tokens: make([]int32, 1)}, pass.Segment{Tokens: make([]int32, 7)},
		errors.New("the GPU failed")
	for _, pass := range []struct {
		took     float64
		err      error
		segments []pass.Segment
	}{{1, nil, []pass.Segment{many}}, {2, failed, []pass.Segment{one, many}}, {4, nil, []pass.Segment{one, one}},
		{8, failed, []pass.Segment{one}}} {
		if err := g.pass(pass.segments, func() error { clock += pass.took; return pass.err }); err != pass.err {
			t.Errorf("%v, wanted %v", err, pass.err)
		}
	}
	want := wire.GPU{Prefill: wire.GPUPhase{Seconds: 3, Passes: 2}, Decode: wire.GPUPhase{Seconds: 12, Passes: 2}}
	if got := g.total(); got != want {
		t.Errorf("%+v, wanted %+v", got, want)
	}
}

func TestCPUHasNoGPUTime(t *testing.T) {
	var g gpuTime
	if err := g.pass(nil, func() error { return nil }); err != nil || g.total() != (wire.GPU{}) {
		t.Errorf("%v, %+v", err, g.total())
	}
}

//go:build unix

package metal

import (
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// fastKeyDims and chunkKeyDims are the key sizes that delta_step and delta_chunk have an instance for.
var (
	fastKeyDims  = map[int]string{32: "delta_step_dk32", 64: "delta_step_dk64", 128: "delta_step_dk128"}
	chunkKeyDims = map[int]string{32: "delta_chunk_dk32", 64: "delta_chunk_dk64", 128: "delta_chunk_dk128"}
)

// encodeDeltaInput runs a convolution, the gates of a delta rule, or both, and writes to the tapes what a replay needs.
// One of the two may be nil.
func (p *pass) encodeDeltaInput(e *encoder, conv *device.Conv, delta *device.DeltaRule) error {
	for i := range p.Segments {
		g := &p.Segments[i]
		s := g.State.(*state)
		recording := s.rec != nil && s.rec.at >= 0
		params := kernels.DeltaInputParams{Rows: u32(g.N)}
		var uses [12]use
		n := 0
		bind := func(u use) {
			uses[n] = u
			n++
		}
		if conv != nil {
			params.Channels, params.Convolve = u32(own(conv.X).cols), 1
			bind(own(conv.Dst).from(g.Row, 1, write))
			bind(own(conv.X).from(g.Row, 2, read))
			bind(own(conv.Weight).use(3, constant))
			bind(use{s.b, 4 * s.tailAt(conv.Layer), 4, write})
			if recording {
				params.KeepInput = 1
				bind(use{s.rec.tape.b, 4 * s.rec.tape.inputsAt(conv.Layer, s.rec.at), 9, write})
			}
		}
		if delta != nil {
			params.Heads = u32(s.g.ValueHeads)
			bind(own(delta.A).from(g.Row, 5, write))
			bind(own(delta.B).from(g.Row, 6, write))
			bind(own(delta.ALog).use(7, constant))
			bind(own(delta.DTBias).use(8, constant))
			if recording {
				t, at := s.rec.tape, s.rec.at
				params.KeepRest = 1
				bind(use{t.b, 4 * t.outputsAt(delta.Layer, at), 10, write})
				bind(use{t.b, 4 * t.alphaAt(delta.Layer, at), 11, write})
				bind(use{t.b, 4 * t.betaAt(delta.Layer, at), 12, write})
				if conv == nil {
					params.Channels = u32(s.g.ConvChannels)
					bind(own(delta.QKV).from(g.Row, 1, write))
				}
			}
		}
		threads := int(params.Channels + params.Heads)
		err := e.run(variant{library: "delta_input", name: "delta_input", threads: 64}, unsafe.Pointer(&params),
			int(unsafe.Sizeof(params)),
			groups(threads, 1, flat), flat, float64(8*g.N*threads), 0, uses[:n]...)
		if err != nil {
			return err
		}
	}
	return nil
}

// encodeDelta runs a delta rule, and the convolution before it when conv is not nil.
func (p *pass) encodeDelta(e *encoder, o *device.DeltaRule, conv *device.Conv) error {
	if err := p.encodeDeltaInput(e, conv, o); err != nil {
		return err
	}
	e.phase()
	for i := range p.Segments {
		g := &p.Segments[i]
		s := g.State.(*state)
		err := s.advance(e, o.Layer, g.N, own(o.Dst).from(g.Row, 1, write), own(o.QKV).from(g.Row, 2, read),
			own(o.A).from(g.Row, 3, read), own(o.B).from(g.Row, 4, read))
		if err != nil {
			return err
		}
	}
	return nil
}

// advance advances a layer by n rows of a pass. A prefill, which no tape keeps, runs by chunks; anything else runs as
// its replay does.
func (s *state) advance(e *encoder, layer, n int, dst, qkv, alpha, beta use) error {
	name := chunkKeyDims[s.g.KeyDim]
	if n <= device.TapeSegment || name == "" || s.g.ValueDim%8 != 0 {
		return s.deltaStep(e, layer, n, dst, qkv, alpha, beta)
	}
	v := s.dev.either(variant{library: "delta_chunk", name: name, threads: 128}, variant{})
	if v.name == "" {
		return s.deltaStep(e, layer, n, dst, qkv, alpha, beta)
	}
	params := s.deltaParams(n)
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)),
		[3]int{divide(s.g.ValueDim, 32), s.g.ValueHeads, 1}, [3]int{128, 1, 1},
		float64(8*s.matrixFloats()), 16*float64(n*s.matrixFloats()), dst, qkv, alpha, beta,
		use{s.b, 4 * s.matrixAt(layer), 5, write})
}

func (s *state) deltaParams(n int) kernels.DeltaStepParams {
	return kernels.DeltaStepParams{Rows: u32(n), KeyHeads: u32(s.g.KeyHeads), ValueHeads: u32(s.g.ValueHeads),
		KeyDim: u32(s.g.KeyDim), ValueDim: u32(s.g.ValueDim)}
}

// deltaStep advances a layer by n rows: dst, qkv, alpha and beta at indices 1 to 4.
func (s *state) deltaStep(e *encoder, layer, n int, dst, qkv, alpha, beta use) error {
	params := s.deltaParams(n)
	v := variant{library: "delta_step_plain", name: "delta_step_plain", threads: 32}
	if name := fastKeyDims[s.g.KeyDim]; name != "" {
		v = s.dev.either(variant{library: "delta_step", name: name, threads: 128}, v)
	}
	group := [3]int{32, 1, 1}
	grid := groups(s.g.ValueDim, s.g.ValueHeads, group)
	if v.threads == 128 {
		group = [3]int{128, 1, 1}
		grid = [3]int{divide(s.g.ValueDim, 4), s.g.ValueHeads, 1}
	}
	flops := 8 * float64(n*s.matrixFloats())
	// a chain of dependent steps
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, float64(8*s.matrixFloats()),
		flops*8,
		dst, qkv, alpha, beta, use{s.b, 4 * s.matrixAt(layer), 5, write})
}

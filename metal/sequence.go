//go:build unix

package metal

import (
	"fmt"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// state keeps all layers in one buffer: S [layers, Hv, Dv, Dk], then tails [layers, taps-1, channels]. It implements
// device.State.
type state struct {
	dev    *Device
	g      device.StateGeometry
	b      *mtl.Buffer
	rec    *recording // nil: no tape
	broken error      // of a replay: the state is wrong
}

func (d *Device) State(g device.StateGeometry) (device.State, error) {
	if g.ConvTaps != device.ConvTaps {
		return nil, fmt.Errorf("a convolution of %d taps: the kernel has %d", g.ConvTaps, device.ConvTaps)
	}
	s := &state{dev: d, g: g}
	b, err := d.allocate("a recurrent state", int(s.Bytes()))
	if err != nil {
		return nil, err
	}
	s.b = b
	s.Reset()
	return s, nil
}

func (s *state) matrixFloats() int { return s.g.ValueHeads * s.g.ValueDim * s.g.KeyDim }
func (s *state) tailFloats() int   { return (s.g.ConvTaps - 1) * s.g.ConvChannels }

// matrixAt and tailAt are where a layer's parts begin, in floats.
func (s *state) matrixAt(layer int) int { return layer * s.matrixFloats() }
func (s *state) tailAt(layer int) int {
	return s.g.Layers*s.matrixFloats() + layer*s.tailFloats()
}

func (s *state) Geometry() device.StateGeometry { return s.g }

func (s *state) Reset() {
	s.forget()
	s.broken = nil
	clear(s.b.Bytes)
}

func (s *state) Copy(from device.State) {
	f := from.(*state)
	s.forget()
	s.broken = f.broken
	if f.g != s.g {
		panic("metal: Copy between states of other shapes")
	}
	copy(s.b.Bytes, f.b.Bytes)
}

func (s *state) Read(matrices, tail []float32, layer int) {
	copy(matrices, floats(s.b, s.matrixAt(layer), s.matrixFloats()))
	copy(tail, floats(s.b, s.tailAt(layer), s.tailFloats()))
}

func (s *state) Bytes() int64 {
	return 4 * int64(s.g.Layers) * int64(s.matrixFloats()+s.tailFloats())
}

func (s *state) Release() {
	if s.rec != nil {
		s.rec.tape.Release()
		s.rec.base.Release()
		s.rec = nil
	}
	s.dev.free(s.b)
	s.b = nil
}

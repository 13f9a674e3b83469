//go:build unix

package metal

import (
	"context"
	"fmt"
	"math"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// pass is a recorder whose operations are encoded in Run. It implements device.Pass.
type pass struct {
	device.Recorder
	dev     *Device
	encoder encoder
	meta    meta
	seconds float64
}

// NewPass implements device.Device.
func (d *Device) NewPass() device.Pass { return &pass{dev: d} }

// own turns a handle of the interface into ours.
func own(b device.Buffer) *buffer { return b.(*buffer) }

// Run encodes, commits and waits. The time that the GPU took is in GPUSeconds.
func (p *pass) Run(ctx context.Context) error { return p.run(ctx, context.Background()) }

// RunStoppable is Run, ended by ctx between two command buffers.
func (p *pass) RunStoppable(ctx context.Context) error { return p.run(ctx, ctx) }

// run looks at before until the pass begins, and at during from then on.
func (p *pass) run(before, during context.Context) error {
	if err := before.Err(); err != nil {
		return err
	}
	p.seconds = 0
	if len(p.Ops) == 0 {
		return nil
	}
	if err := p.lostPages(); err != nil {
		return err
	}
	if err := p.layMeta(); err != nil {
		return err
	}
	if err := p.beginStates(); err != nil {
		return err
	}
	return p.dev.runtime.Pool(func() error {
		e := &p.encoder
		e.begin(p.dev)
		e.stop = during
		err := p.encode(e)
		if err2 := e.finish(); err == nil {
			err = err2
		}
		p.seconds = e.seconds
		p.dev.addGPUSeconds(e.seconds)
		for _, b := range p.meta.outgrown {
			p.dev.free(b)
		}
		p.meta.outgrown = p.meta.outgrown[:0]
		if err == nil && p.meta.ints()[0] != 0 {
			err = &device.RangeError{BF16: p.dev.opt.BF16}
		}
		return err
	})
}

// lostPages is why a pool that the pass needs cannot be used, or nil.
func (p *pass) lostPages() error {
	for i := range p.AttentionInputs {
		if err := p.AttentionInputs[i].KV.(*kv).lost; err != nil {
			return err
		}
	}
	for i := range p.Attentions {
		if err := p.Attentions[i].KV.(*kv).lost; err != nil {
			return err
		}
	}
	return nil
}

// beginStates prepares the tapes of the segments whose states change.
func (p *pass) beginStates() error {
	moves := len(p.DeltaRules) > 0
	for i := range p.Segments {
		s, ok := p.Segments[i].State.(*state)
		if !ok {
			continue
		}
		if s.broken != nil {
			return fmt.Errorf("an earlier replay of the state failed: %w", s.broken)
		}
		if !moves {
			s.passBy()
			continue
		}
		if err := s.beginPass(p.Segments[i].N); err != nil {
			return err
		}
	}
	return nil
}

// GPUSeconds is how long the GPU worked on the last Run.
func (p *pass) GPUSeconds() float64 { return p.seconds }

// meta is the integers that the kernels of a pass read: a status word, positions and cache slots of the rows, page
// tables, token ids.
type meta struct {
	host             []int32
	b                *mtl.Buffer
	positions, slots int
	pages            []int         // by segment
	ops              []int         // by operation: where its integers begin
	partial          *mtl.Buffer   // from the first dispatch of an operation to its second
	outgrown         []*mtl.Buffer // earlier ones, released after the run
}

// ints is the memory that the GPU reads.
func (m *meta) ints() []int32 { return int32s(m.b, len(m.host)) }

// layMeta lays out the integers and copies them to the GPU, which is idle.
func (p *pass) layMeta() error {
	m := &p.meta
	m.host = append(m.host[:0], 0, 0)
	m.positions = len(m.host)
	for _, s := range p.Segments {
		for i := range s.N {
			m.host = append(m.host, int32(s.Start+i))
		}
	}
	m.slots = len(m.host)
	for _, s := range p.Segments {
		for i := range s.N {
			slot := int32(-1) // a pass without attention has no pages
			if at := s.Start + i; at/device.PageTokens < len(s.Pages) {
				slot = s.Pages[at/device.PageTokens]*device.PageTokens + int32(at%device.PageTokens)
			}
			m.host = append(m.host, slot)
		}
	}
	m.pages = m.pages[:0]
	for _, s := range p.Segments {
		m.pages = append(m.pages, len(m.host))
		m.host = append(m.host, s.Pages...)
	}
	m.ops = m.ops[:0]
	for _, o := range p.Ops {
		if o.Kind == device.KindRotation && len(m.host)%2 == 1 {
			m.host = append(m.host, 0)
		}
		m.ops = append(m.ops, len(m.host))
		switch o.Kind {
		case device.KindEmbed:
			m.host = append(m.host, p.Embeds[o.Index].Tokens...)
		case device.KindGather:
			m.host = append(m.host, p.Gathers[o.Index].Indices...)
		case device.KindRotation:
			for _, f := range p.Rotations[o.Index].Inverse {
				turn := turns(f)
				m.host = append(m.host, int32(uint32(turn)), int32(uint32(turn>>32)))
			}
		}
	}
	if m.b == nil || m.b.Length < 4*len(m.host) {
		b, err := p.dev.allocate("a pass's integers", 4*len(m.host)*5/4/8*8+8)
		if err != nil {
			return err
		}
		if m.b != nil {
			p.dev.free(m.b)
		}
		m.b = b
	}
	copy(m.ints(), m.host)
	return nil
}

// growPartial makes room for n words between an operation's two dispatches. A smaller buffer may still be in use by the
// operations encoded before: it is released when the pass has run.
func (p *pass) growPartial(what string, n int) error {
	if n == 0 || p.meta.partial != nil && p.meta.partial.Length >= 4*n {
		return nil
	}
	b, err := p.dev.allocate(what, 4*n)
	if err != nil {
		return err
	}
	if p.meta.partial != nil {
		p.meta.outgrown = append(p.meta.outgrown, p.meta.partial)
	}
	p.meta.partial = b
	return nil
}

// turns is a rotary frequency, in radians a position, as a fraction of 2^64 of a turn. f is in [0, 2π).
func turns(f float64) uint64 {
	return uint64(f/(2*math.Pi)*(1<<53)+0.5) << 11
}

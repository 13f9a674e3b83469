package cpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// pass is a recorder whose operations are run as steps, each cut into independent tasks. It implements device.Pass.
type pass struct {
	device.Recorder
	pool     *pool
	steps    []step
	progress []progress
	scratch  []scratch // one a thread
}

// progress counts the tasks of one step. Padded to two cache lines, which processors fetch together.
type progress struct {
	next, finished atomic.Int32
	_              [120]byte
}

func (d *Device) NewPass() device.Pass {
	return &pass{pool: d.pool, scratch: make([]scratch, d.Threads())}
}

// step is an operation, or a part of one that must end before the next begins.
type step struct {
	kind        stepKind
	index       int // in the recorder's list of the kind
	tasks       int32
	rows        int
	rowsPerTask int
	grid        int // of a linear step: pieces of rows; of attention: tiles a head
	panels      int // of a linear step: of all products
	perTask     int // of a linear step: panels a task
}

type stepKind int

const (
	stepEmbed stepKind = iota
	stepNorm
	stepLinear
	stepSwiGLU
	stepGather
	stepConv
	stepConvTail
	stepDeltaPrepare
	stepDelta
	stepGatedNorm
	stepRotation
	stepAttentionInput
	stepAttention
	stepTopK
)

// taskFloats is how many floats a task of an element-wise operation should touch: about 2 µs of work, ten times what
// taking a task from another core costs.
const taskFloats = 8192

// byRows cuts a step so that a task touches about taskFloats.
func byRows(kind stepKind, index, rows, floatsPerRow int) step {
	s := step{kind: kind, index: index, rows: rows}
	s.rowsPerTask = max(1, min(rows, taskFloats/max(1, floatsPerRow)))
	s.tasks = int32((rows + s.rowsPerTask - 1) / s.rowsPerTask)
	return s
}

// plan turns the operations into steps.
func (p *pass) plan() {
	p.steps = p.steps[:0]
	for _, o := range p.Ops {
		i := o.Index
		switch o.Kind {
		case device.KindEmbed:
			e := &p.Embeds[i]
			p.steps = append(p.steps, byRows(stepEmbed, i, len(e.Tokens), 4*e.Dst.Cols()))
		case device.KindRMSNorm:
			n := &p.RMSNorms[i]
			p.steps = append(p.steps, byRows(stepNorm, i, n.Rows, n.X.Cols()))
		case device.KindLinear:
			p.steps = append(p.steps, linearStep(&p.Linears[i], i))
		case device.KindSwiGLU:
			g := &p.SwiGLUs[i]
			p.steps = append(p.steps, byRows(stepSwiGLU, i, g.Rows, 2*g.Dst.Cols()))
		case device.KindGather:
			g := &p.Gathers[i]
			p.steps = append(p.steps, byRows(stepGather, i, len(g.Indices), g.Dst.Cols()))
		case device.KindConv:
			// The tails change after every row has read the old ones.
			p.steps = append(p.steps, byRows(stepConv, i, p.Rows, device.ConvTaps*p.Convs[i].X.Cols()),
				step{kind: stepConvTail, index: i, tasks: int32(len(p.Segments))})
		case device.KindDeltaRule:
			// Norms and gates by rows, then the recurrence by segment and value head.
			heads := p.Segments[0].State.Geometry().ValueHeads
			p.steps = append(p.steps, byRows(stepDeltaPrepare, i, p.Rows, p.DeltaRules[i].QKV.Cols()),
				step{kind: stepDelta, index: i, tasks: int32(len(p.Segments) * heads)})
		case device.KindGatedNorm:
			p.steps = append(p.steps, byRows(stepGatedNorm, i, p.Rows, 3*p.GatedNorms[i].Dst.Cols()))
		case device.KindRotation:
			p.steps = append(p.steps, byRows(stepRotation, i, p.Rows, 64*len(p.Rotations[i].Inverse)))
		case device.KindAttentionInput:
			p.steps = append(p.steps, byRows(stepAttentionInput, i, p.Rows, 4*p.AttentionInputs[i].Q.Cols()))
		case device.KindAttention:
			p.steps = append(p.steps, p.attentionStep(i))
		case device.KindTopK:
			t := &p.TopKs[i]
			p.steps = append(p.steps, byRows(stepTopK, i, t.Rows, t.Src.Cols()))
		default:
			panic(fmt.Sprintf("cpu: an operation of kind %d", o.Kind))
		}
	}
}

func (p *pass) Run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range p.Segments {
		if s, ok := p.Segments[i].State.(*state); ok {
			s.beginPass(p.Segments[i].N)
		}
	}
	p.plan()
	for len(p.progress) < len(p.steps) {
		p.progress = append(p.progress, progress{})
	}
	for i := range p.steps {
		p.progress[i].next.Store(0)
		p.progress[i].finished.Store(0)
	}
	p.pool.run(p)
	return nil
}

// work is one thread's share of the pass: step by step, it takes the tasks that are left, then waits for the other
// threads.
func (p *pass) work(thread int) {
	s := &p.scratch[thread]
	for i := range p.steps {
		o, g := &p.steps[i], &p.progress[i]
		for {
			t := g.next.Add(1) - 1
			if t >= o.tasks {
				break
			}
			p.runTask(o, int(t), s)
			g.finished.Add(1)
		}
		for spins := 0; g.finished.Load() != o.tasks; spins++ {
			pause(spins)
		}
	}
}

func (p *pass) runTask(o *step, task int, s *scratch) {
	lo := task * o.rowsPerTask
	hi := min(lo+o.rowsPerTask, o.rows)
	switch o.kind {
	case stepEmbed:
		embed(&p.Embeds[o.index], lo, hi)
	case stepNorm:
		rmsNorm(&p.RMSNorms[o.index], lo, hi)
	case stepLinear:
		linear(&p.Linears[o.index], o, task, s)
	case stepSwiGLU:
		swiglu(&p.SwiGLUs[o.index], lo, hi)
	case stepGather:
		gather(&p.Gathers[o.index], lo, hi)
	case stepConv:
		p.conv(&p.Convs[o.index], lo, hi)
	case stepConvTail:
		p.convTail(&p.Convs[o.index], task)
	case stepDeltaPrepare:
		p.deltaPrepare(&p.DeltaRules[o.index], lo, hi)
	case stepDelta:
		p.delta(&p.DeltaRules[o.index], task)
	case stepGatedNorm:
		gatedNorm(&p.GatedNorms[o.index], lo, hi)
	case stepRotation:
		p.rotation(&p.Rotations[o.index], lo, hi)
	case stepAttentionInput:
		p.attentionInput(&p.AttentionInputs[o.index], lo, hi)
	case stepAttention:
		p.attention(&p.Attentions[o.index], o.grid, task, s)
	case stepTopK:
		topK(&p.TopKs[o.index], lo, hi)
	}
}

// scratch is one thread's working memory; it grows to what its largest task needs and stays.
type scratch struct {
	tile    []float32
	softmax []kernels.Softmax
	counts  []int
}

func (s *scratch) floats(n int) []float32 {
	if cap(s.tile) < n {
		s.tile = aligned(n)
	}
	return s.tile[:n]
}

// own turns a handle of the interface into ours.
func own(b device.Buffer) *buffer { return b.(*buffer) }

// segmentAt returns the index of the segment that holds row.
func (p *pass) segmentAt(row int) int {
	i := 0
	for row >= p.Segments[i].Row+p.Segments[i].N {
		i++
	}
	return i
}

// rows returns the softmax states and visible counts of n query rows.
func (s *scratch) rows(n int) ([]kernels.Softmax, []int) {
	if len(s.softmax) < n {
		s.softmax, s.counts = make([]kernels.Softmax, n), make([]int, n)
	}
	return s.softmax[:n], s.counts[:n]
}

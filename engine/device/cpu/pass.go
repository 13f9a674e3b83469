package cpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// pass is a list of operations, each cut into independent tasks. It implements device.Pass.
type pass struct {
	pool     *pool
	segments []device.Segment
	rows     int
	ops      []op
	progress []progress
	scratch  []scratch // one a thread
}

// progress counts the tasks of one operation. Padded to two cache lines, which processors fetch together.
type progress struct {
	next, finished atomic.Int32
	_              [120]byte
}

func (d *Device) NewPass() device.Pass {
	return &pass{pool: d.pool, scratch: make([]scratch, d.Threads())}
}

// op is one recorded operation. Which fields mean what is said where its kind is recorded.
type op struct {
	kind            opKind
	tasks           int32
	rows, column    int
	rowsPerTask     int
	layer, headDim  int
	eps             float32
	dst, a, b, c, d *buffer
	e, f            *buffer
	table           matrix
	ids             []int32
	products        []device.Product
	panels, perTask int // of a linear operation
	inverse         []float64
	kv              *kv
}

type opKind int

const (
	opEmbed opKind = iota
	opNorm
	opLinear
	opSwiGLU
	opGather
	opConv
	opConvTail
	opDeltaPrepare
	opDelta
	opGatedNorm
	opRotation
	opAttentionInput
	opAttention
	opTopK
)

// taskFloats is how many floats a task of an element-wise operation should touch: about 2 µs of work, ten times what taking
// a task from another core costs.
const taskFloats = 8192

func (p *pass) Begin(segments []device.Segment) {
	p.segments = segments
	p.ops = p.ops[:0]
	p.rows = 0
	for i, s := range segments {
		if s.Row != p.rows || s.N <= 0 || s.Start < 0 {
			panic(fmt.Sprintf("cpu: segment %d has rows [%d,%d) after %d", i, s.Row, s.Row+s.N, p.rows))
		}
		p.rows += s.N
	}
}

// add appends an operation over rows that are cut so that a task touches about taskFloats.
func (p *pass) add(o op, floatsPerRow int) {
	o.rowsPerTask = max(1, min(o.rows, taskFloats/max(1, floatsPerRow)))
	o.tasks = int32((o.rows + o.rowsPerTask - 1) / o.rowsPerTask)
	p.addTasks(o)
}

func (p *pass) addTasks(o op) {
	if o.tasks > 0 {
		p.ops = append(p.ops, o)
	}
}

func (p *pass) Run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range p.segments {
		if s, ok := p.segments[i].State.(*state); ok {
			s.beginPass(p.segments[i].N)
		}
	}
	for len(p.progress) < len(p.ops) {
		p.progress = append(p.progress, progress{})
	}
	for i := range p.ops {
		p.progress[i].next.Store(0)
		p.progress[i].finished.Store(0)
	}
	p.pool.run(p)
	return nil
}

// work is one thread's share of the pass: operation by operation, whatever tasks are left, then wait for the others'.
func (p *pass) work(thread int) {
	s := &p.scratch[thread]
	for i := range p.ops {
		o, g := &p.ops[i], &p.progress[i]
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

func (p *pass) runTask(o *op, task int, s *scratch) {
	lo := task * o.rowsPerTask
	hi := min(lo+o.rowsPerTask, o.rows)
	switch o.kind {
	case opEmbed:
		o.embed(lo, hi)
	case opNorm:
		o.norm(lo, hi)
	case opLinear:
		o.linear(task, s)
	case opSwiGLU:
		o.swiglu(lo, hi)
	case opGather:
		o.gather(lo, hi)
	case opConv:
		p.conv(o, lo, hi)
	case opConvTail:
		p.convTail(o, task)
	case opDeltaPrepare:
		o.deltaPrepare(lo, hi)
	case opDelta:
		p.delta(o, task)
	case opGatedNorm:
		o.gatedNorm(lo, hi)
	case opRotation:
		p.rotation(o, lo, hi)
	case opAttentionInput:
		p.attentionInput(o, lo, hi)
	case opAttention:
		p.attention(o, task, s)
	case opTopK:
		o.topK(lo, hi)
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

// own turns a handle of the interface into ours and checks that it has at least rows rows.
func own(b device.Buffer, rows int) *buffer {
	o := b.(*buffer)
	if o.rows < rows {
		panic(fmt.Sprintf("cpu: %d rows in a buffer of %d", rows, o.rows))
	}
	return o
}

func wantCols(what string, found, wanted int) {
	if found != wanted {
		panic(fmt.Sprintf("cpu: %s has %d columns, wanted %d", what, found, wanted))
	}
}

// segmentAt returns the index of the segment that holds row.
func (p *pass) segmentAt(row int) int {
	i := 0
	for row >= p.segments[i].Row+p.segments[i].N {
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

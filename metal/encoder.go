//go:build unix

package metal

import (
	"context"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// CommandSeconds is the longest time that a command buffer should use the GPU, by estimate: the desktop shares the GPU,
// and the system ends work that takes seconds.
const CommandSeconds = 0.2

// inFlight is how many command buffers may be committed and not done: one runs, one waits, the third is being encoded.
const inFlight = 2

// startPace is seconds a byte before anything was measured: half of the memory bandwidth of the slowest M-series chip.
const startPace = 1 / 30e9

// flopsPerByte turns arithmetic into the bytes that take the same time: about 2.6 TFLOP/s to 68 GB/s on an M1, and
// similar on later chips.
const flopsPerByte = 40

// encoder writes dispatches into command buffers and puts barriers between those that need each other.
type encoder struct {
	dev     *Device
	current mtl.Commands
	open    bool
	cost    float64 // of the open command buffer, in bytes
	flight  []committed
	seconds float64
	err     error
	stop    context.Context // ends the pass between two command buffers; nil: nothing does

	bindings mtl.Bindings  // of the dispatch that is being encoded
	pipeline *mtl.Pipeline // of the last dispatch of the open command buffer

	reads, writes []*mtl.Buffer // since the last barrier
	// Dispatches of one phase may run together, on different parts of a buffer: only dispatches before the phase can
	// conflict.
	readsBefore, writesBefore int
}

type committed struct {
	commands mtl.Commands
	cost     float64
}

// use is a buffer bound to an index. Constants are never written by a kernel and take no part in hazards.
type use struct {
	b             *mtl.Buffer
	offset, index int
	access        access
}

type access int

const (
	constant access = iota
	read
	write // also read and written
)

// begin starts over. The GPU is idle.
func (e *encoder) begin(d *Device) {
	*e = encoder{dev: d, flight: e.flight[:0], reads: e.reads[:0], writes: e.writes[:0]}
	d.arguments.used = 0
}

// phase begins dispatches that may run together.
func (e *encoder) phase() { e.readsBefore, e.writesBefore = len(e.reads), len(e.writes) }

// forget clears what was recorded since the last barrier.
func (e *encoder) forget() {
	e.reads, e.writes = e.reads[:0], e.writes[:0]
	e.phase()
}

// run encodes one dispatch of v: its parameters at index 0, and every buffer in one message. bytes and flops are what
// it moves and computes.
func (e *encoder) run(v variant, params unsafe.Pointer, paramBytes int, grid, group [3]int, bytes, flops float64,
	uses ...use) error {
	p, err := e.dev.pipeline(v)
	if err != nil {
		return err
	}
	arguments, at, err := e.dev.arguments.write(e.dev, params, paramBytes)
	if err != nil {
		return err
	}
	cost := max(bytes, flops/flopsPerByte)
	if e.open && e.cost+cost > e.budget() {
		e.commit()
		if e.err != nil {
			return e.err
		}
		if e.stop != nil && e.stop.Err() != nil {
			return &device.StoppedError{Err: e.stop.Err()}
		}
	}
	if !e.open {
		e.current, e.open, e.cost = e.dev.queue.Commands(), true, 0
		e.pipeline = nil
		e.forget() // Metal orders command buffers by the buffers that they share
	}
	e.cost += cost
	if e.conflicts(uses) {
		e.current.Barrier()
		e.forget()
	}
	if e.pipeline != p {
		e.current.SetPipeline(p)
		e.pipeline = p
	}
	e.bindings.Clear()
	e.bindings.Set(arguments, at, 0)
	for _, u := range uses {
		e.bindings.Set(u.b, u.offset, u.index)
		switch u.access {
		case read:
			e.reads = append(e.reads, u.b)
		case write:
			e.writes = append(e.writes, u.b)
		}
	}
	e.current.Bind(&e.bindings)
	e.current.Dispatch(grid, group)
	return nil
}

// budget is the cost that a command buffer may have.
func (e *encoder) budget() float64 { return CommandSeconds / e.dev.pace }

// conflicts reports whether a dispatch reads what an earlier phase since the last barrier writes, or writes what one
// reads or writes.
func (e *encoder) conflicts(uses []use) bool {
	for _, u := range uses {
		if u.access == constant {
			continue
		}
		if contains(e.writes[:e.writesBefore], u.b) || u.access == write && contains(e.reads[:e.readsBefore], u.b) {
			return true
		}
	}
	return false
}

func contains(list []*mtl.Buffer, b *mtl.Buffer) bool {
	for _, x := range list {
		if x == b {
			return true
		}
	}
	return false
}

// commit gives the open command buffer to the GPU. It first waits until few enough are in flight.
func (e *encoder) commit() {
	for len(e.flight) >= inFlight {
		e.wait()
	}
	e.current.Commit()
	e.flight = append(e.flight, committed{e.current, e.cost})
	e.open = false
}

// wait waits for the oldest command buffer, learns its speed and keeps the first error.
func (e *encoder) wait() {
	c := e.flight[0]
	e.flight = append(e.flight[:0], e.flight[1:]...)
	seconds, err := c.commands.Wait()
	c.commands.Release()
	if err != nil && e.err == nil {
		e.err = err
	}
	e.seconds += seconds
	if err == nil && c.cost > 0 && seconds > 0.001 { // shorter ones measure the launch
		e.dev.pace += (seconds/c.cost - e.dev.pace) / 4 // a mean of times, not of rates: a slow one counts at once
	}
}

// finish commits what is left and waits for all command buffers, also after an error.
func (e *encoder) finish() error {
	if e.open {
		e.commit()
	}
	for len(e.flight) > 0 {
		e.wait()
	}
	return e.err
}

func int32s(b *mtl.Buffer, n int) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(&b.Bytes[0])), n)
}

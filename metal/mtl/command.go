//go:build unix

package mtl

import (
	"fmt"
	"unsafe"
)

// Queue takes command buffers in order.
type Queue struct {
	r  *Runtime
	id object
}

func (d *Device) NewQueue() *Queue { return &Queue{d.r, object(d.r.message(d.id, selNewQueue))} }

// Release releases the queue.
func (q *Queue) Release() { q.r.message(q.id, selRelease) }

// Commands is a command buffer with one concurrent compute encoder. It keeps no buffer alive.
type Commands struct {
	r           *Runtime
	id, encoder object
}

// Commands begins a command buffer. It outlives the pool around the call; Release releases it.
func (q *Queue) Commands() Commands {
	id := object(q.r.message(object(q.r.message(q.id, selCommandBuffer)), selRetain))
	return Commands{q.r, id, object(q.r.message(id, selEncoder, dispatchConcurrent))}
}

func (c Commands) SetPipeline(p *Pipeline) { c.r.message(c.encoder, selSetPipeline, uintptr(p.id)) }

// Bindings are the buffers of one dispatch, by index. The zero value is empty; it is used again after Clear.
type Bindings struct {
	ids     [31]object
	offsets [31]uintptr
	n       int
}

// Clear forgets all buffers.
func (l *Bindings) Clear() {
	clear(l.ids[:l.n])
	l.n = 0
}

// Set puts b from offset, in bytes, at index.
func (l *Bindings) Set(b *Buffer, offset, index int) {
	if offset < 0 || offset >= b.Length || offset%4 != 0 || index < 0 || index >= len(l.ids) {
		panic(fmt.Sprintf("mtl: buffer of %d bytes from %d at index %d", b.Length, offset, index))
	}
	l.ids[index], l.offsets[index] = b.id, uintptr(offset)
	l.n = max(l.n, index+1)
}

// Bind binds all of l in one message. An index that was left out gets the buffer of index 0, which must be there.
func (c Commands) Bind(l *Bindings) {
	if l.ids[0] == 0 {
		panic("mtl: nothing at index 0")
	}
	for i := range l.n {
		if l.ids[i] == 0 {
			l.ids[i], l.offsets[i] = l.ids[0], l.offsets[0]
		}
	}
	c.r.ranged(c.encoder, selSetBuffers, uintptr(unsafe.Pointer(&l.ids[0])), uintptr(unsafe.Pointer(&l.offsets[0])),
		nsRange{0, uintptr(l.n)})
}

// Dispatch runs grid threadgroups of group threads. Without a Barrier it may run together with those before.
func (c Commands) Dispatch(grid, group [3]int) {
	c.r.sizes(c.encoder, selDispatch, size3{uint64(grid[0]), uint64(grid[1]), uint64(grid[2])},
		size3{uint64(group[0]), uint64(group[1]), uint64(group[2])})
}

// Barrier makes the dispatches after it see what those before it wrote.
func (c Commands) Barrier() { c.r.message(c.encoder, selBarrier, barrierBuffers) }

// Commit ends the recording and submits the work to the GPU.
func (c Commands) Commit() {
	c.r.message(c.encoder, selEndEncoding)
	c.r.message(c.id, selCommit)
}

// Wait waits until the work is done and returns the GPU's time in seconds.
func (c Commands) Wait() (float64, error) {
	c.r.message(c.id, selWait)
	if c.r.message(c.id, selStatus) == statusError {
		return 0, c.r.nsError("command buffer", object(c.r.message(c.id, selError)))
	}
	return c.r.double(c.id, selGPUEnd) - c.r.double(c.id, selGPUStart), nil
}

// Release releases the command buffer, after Wait.
func (c Commands) Release() { c.r.message(c.id, selRelease) }

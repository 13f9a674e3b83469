//go:build unix

package metal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// buffer is [rows, cols] f32. It implements device.Buffer.
type buffer struct {
	dev        *Device
	rows, cols int
	b          *mtl.Buffer
}

// allocate makes n bytes within the working set.
func (d *Device) allocate(what string, n int) (*mtl.Buffer, error) {
	n = max(n, 4)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(what, int64(n)); err != nil {
		return nil, err
	}
	b, err := d.gpu.NewBuffer(n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	d.heldBytes += int64(n)
	d.live[b] = false
	return b, nil
}

func (d *Device) room(what string, n int64) error {
	if d.heldBytes+n > d.facts.WorkingSetBytes {
		return &device.MemoryError{What: what, Bytes: n, Held: d.heldBytes, WorkingSet: d.facts.WorkingSetBytes}
	}
	return nil
}

// fits checks in advance whether there is room for n bytes in several buffers.
func (d *Device) fits(what string, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.room(what, n)
}

// allocatePages makes n bytes of zeroes that take memory only as they are written: a buffer over an anonymous mapping.
func (d *Device) allocatePages(what string, n int) (*mtl.Buffer, error) {
	page := os.Getpagesize()
	n = (max(n, 1) + page - 1) / page * page
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(what, int64(n)); err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("%s: %d bytes: %w", what, n, err)
	}
	b, err := d.gpu.NewBufferOver(unsafe.Pointer(&memory[0]), n)
	if err != nil {
		syscall.Munmap(memory)
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	b.Bytes = memory
	d.heldBytes += int64(n)
	d.live[b] = true
	return b, nil
}

// free releases a buffer, unless Close has done so.
func (d *Device) free(b *mtl.Buffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release(b)
}

func (d *Device) release(b *mtl.Buffer) {
	mapped, ok := d.live[b]
	if !ok {
		return
	}
	delete(d.live, b)
	d.heldBytes -= int64(b.Length)
	memory := b.Bytes
	b.Bytes = nil
	b.Release()
	if mapped {
		syscall.Munmap(memory)
	}
}

func (d *Device) newBuffer(what string, rows, cols int) (*buffer, error) {
	b, err := d.allocate(what, 4*rows*cols)
	if err != nil {
		return nil, err
	}
	clear(b.Bytes)
	return &buffer{d, rows, cols, b}, nil
}

func (b *buffer) Rows() int         { return b.rows }
func (b *buffer) Cols() int         { return b.cols }
func (b *buffer) Floats() []float32 { return floats(b.b, 0, b.rows*b.cols) }
func (b *buffer) Release()          { b.dev.free(b.b); b.b, b.rows = nil, 0 }

// floats returns n floats of a buffer from an offset in floats.
func floats(b *mtl.Buffer, from, n int) []float32 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b.Bytes[4*from])), n)
}

// piece is a place in a buffer.
type piece struct {
	b      *mtl.Buffer
	offset int
}

// view is a run of whole pages of mapped memory as one buffer.
type view struct {
	from, to uintptr
	buffer   *mtl.Buffer
}

// matrix is a weight matrix on the GPU. It implements device.Matrix.
type matrix struct {
	out, in              int
	format               device.Format
	bits, group          int
	scaleFormat          device.Format
	data, scales, biases piece
	bytes                int64
}

func (m *matrix) Out() int     { return m.out }
func (m *matrix) In() int      { return m.in }
func (m *matrix) Bytes() int64 { return m.bytes }

// Matrix uses mapped memory in place and copies the rest.
func (d *Device) Matrix(data device.MatrixData) (device.Matrix, error) {
	m := &matrix{out: data.Out, in: data.In, format: data.Format, bits: data.Bits, group: data.Group,
		scaleFormat: data.ScaleFormat}
	if err := checkMatrix(data); err != nil {
		return nil, fmt.Errorf("%s: %w", data.Name, err)
	}
	parts := []struct {
		to    *piece
		bytes []byte
	}{{&m.data, data.Data}, {&m.scales, data.Scales}, {&m.biases, data.Biases}}
	for _, p := range parts {
		if len(p.bytes) == 0 {
			continue
		}
		var err error
		if *p.to, err = d.place(data.Name, p.bytes); err != nil {
			var short *device.MemoryError
			if errors.As(err, &short) {
				short.Weights = true
			}
			return nil, err
		}
		m.bytes += int64(len(p.bytes))
	}
	return m, nil
}

// formatBytes is the size of a number.
var formatBytes = map[device.Format]int{device.FormatF32: 4, device.FormatF16: 2, device.FormatBF16: 2}

// checkMatrix refuses formats that the kernels cannot read.
func checkMatrix(m device.MatrixData) error {
	if m.Out < 1 || m.In < 1 || m.Out > math.MaxInt32 || m.In > math.MaxInt32 {
		return fmt.Errorf("a matrix of [%d,%d]", m.Out, m.In)
	}
	if m.Format != device.FormatAffine {
		if formatBytes[m.Format] == 0 || len(m.Data) != m.Out*m.In*formatBytes[m.Format] {
			return fmt.Errorf("%d bytes for [%d,%d] of format %d", len(m.Data), m.Out, m.In, m.Format)
		}
		return nil
	}
	if m.Group != 32 && m.Group != 64 && m.Group != 128 || m.In%m.Group != 0 {
		return fmt.Errorf("groups of %d in rows of %d", m.Group, m.In)
	}
	if m.Bits < 2 || m.Bits > 8 || m.Bits == 7 {
		return fmt.Errorf("codes of %d bits", m.Bits)
	}
	scales := m.Out * (m.In / m.Group) * formatBytes[m.ScaleFormat]
	if scales == 0 || len(m.Data) != m.Out*m.In*m.Bits/8 || len(m.Scales) != scales || len(m.Biases) != scales {
		return fmt.Errorf("%d bytes of codes, %d of scales, %d of biases for [%d,%d]", len(m.Data), len(m.Scales),
			len(m.Biases), m.Out, m.In)
	}
	return nil
}

// place finds bytes in a view or makes a view for them. Bytes that are not mapped, or not aligned for the fast kernels,
// are copied.
func (d *Device) place(what string, bytes []byte) (piece, error) {
	at := uintptr(unsafe.Pointer(&bytes[0]))
	if at%16 == 0 {
		if p, ok, err := d.inView(what, at, uintptr(len(bytes))); ok || err != nil {
			return p, err
		}
	}
	b, err := d.copy(what, bytes)
	return piece{b: b}, err
}

func (d *Device) inView(what string, at, n uintptr) (piece, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.views {
		if at >= v.from && at+n <= v.to {
			d.weights.InPlaceBytes += int64(n)
			return piece{b: v.buffer, offset: int(at - v.from)}, true, nil
		}
	}
	page := uintptr(os.Getpagesize())
	for _, region := range d.opt.Mapped {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(region)))
		to := from + uintptr(len(region))
		if at < from || at+n > to {
			continue
		}
		v := viewAt(from, to, at, n, uintptr(d.facts.MaxBufferBytes)/page*page, page)
		if at+n > v.to {
			return piece{}, false, nil // larger than a buffer may be: the copy returns that error
		}
		if err := d.room(what, int64(v.to-v.from)-d.overlap(v)); err != nil {
			return piece{}, false, err
		}
		var err error
		if v.buffer, err = d.gpu.NewBufferOver(*(*unsafe.Pointer)(unsafe.Pointer(&v.from)),
			int(v.to-v.from)); err != nil {
			return piece{}, false, fmt.Errorf("%s: %w", what, err)
		}
		d.heldBytes += int64(v.to-v.from) - d.overlap(v)
		d.views = append(d.views, v)
		d.weights.InPlaceBytes += int64(n)
		return piece{b: v.buffer, offset: int(at - v.from)}, true, nil
	}
	return piece{}, false, nil
}

// viewAt is the view for n bytes at offset at of a region [from, to): the whole region where a buffer may be that long,
// else runs of the longest buffer, beginning at every half of it, so that whatever is at most half as long is inside
// one of them; else a run of its own.
func viewAt(from, to, at, n, longest, page uintptr) view {
	from, to = from/page*page, (to+page-1)/page*page
	if step := longest / 2 / page * page; to-from > longest && step > 0 {
		from += (at - from) / step * step
		if at+n > from+longest {
			from = at / page * page
		}
	}
	return view{from: from, to: min(to, from+longest)}
}

// overlap is how many bytes at the head of v earlier views hold already.
func (d *Device) overlap(v view) int64 {
	covered := v.from
	for _, o := range d.views {
		if o.from <= covered && o.to > covered {
			covered = min(o.to, v.to)
		}
	}
	return int64(covered - v.from)
}

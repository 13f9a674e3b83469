//go:build unix

package metal

import (
	"context"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway/metal/mtl"
)

// Weights counts how matrices of mapped files are used: in place, or copied because they are not aligned or longer
// than a buffer may be.
type Weights struct{ InPlaceBytes, CopiedBytes int64 }

// Weights returns how the matrices so far are used.
func (d *Device) Weights() Weights {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.weights
}

// Reading ahead: 4 readers keep a solid-state disk busy, 8 MiB each at a time.
const (
	readers    = 4
	chunkBytes = 8 << 20
)

// Prefault reads the mapped memory that matrices use, so that no command buffer waits for the disk; what was
// copied is not read again. Call it once the weights are loaded. progress, which may be nil, receives bytes, from one
// goroutine at a time. Errors: the context's; a disk that fails under the mapping.
func (d *Device) Prefault(ctx context.Context, progress func(done, total int64)) error {
	chunks, total := d.chunks()
	done := int64(0)
	return inParallel(ctx, len(chunks), func(i int) error { return touch(chunks[i]) }, func(i int) {
		if done += int64(len(chunks[i])); progress != nil {
			progress(done, total)
		}
	})
}

// inParallel does n pieces of work with several readers, up to the first error or the end of the context. did receives
// which are done, from one goroutine at a time.
func inParallel(ctx context.Context, n int, work func(i int) error, did func(i int)) error {
	var (
		wait  sync.WaitGroup
		next  atomic.Int64
		mu    sync.Mutex // guards what follows
		first error
	)
	for range min(readers, n) {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := work(i)
				mu.Lock()
				if err == nil {
					did(i)
				} else if first == nil {
					first = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// chunks splits the parts of mapped regions that matrices use in place.
func (d *Device) chunks() (chunks [][]byte, total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, region := range d.opt.Mapped {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(region)))
		used := false
		for _, v := range d.views {
			used = used || v.from < from+uintptr(len(region)) && v.to > from
		}
		if !used {
			continue
		}
		for _, rest := range d.uncopied(region) {
			for chunk := range slices.Chunk(rest, chunkBytes) {
				chunks = append(chunks, chunk)
				total += int64(len(chunk))
			}
		}
	}
	return chunks, total
}

// touched keeps touch's reads from being compiled away.
var touched atomic.Uint32

// touch reads a byte of each page. A disk that fails, or a file that was truncated, is an error and does not end the
// process.
func touch(chunk []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer faulted(&err)
	unix.Madvise(chunk, unix.MADV_WILLNEED) // only advice: without it the pages are read one by one
	sum := byte(0)
	for at := 0; at < len(chunk); at += os.Getpagesize() {
		sum += chunk[at]
	}
	touched.Store(uint32(sum))
	return nil
}

// MakeResident asks macOS to keep the weights, in place and copied, resident for the GPU. Call it once they are loaded.
// False where macOS cannot.
func (d *Device) MakeResident() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var buffers []*mtl.Buffer
	for _, v := range d.views {
		buffers = append(buffers, v.buffer)
	}
	for _, c := range d.copies {
		buffers = append(buffers, c.buffer)
	}
	if len(buffers) == 0 || d.resident != nil {
		return d.resident != nil, nil
	}
	set, err := d.gpu.Resident(d.queue, buffers)
	d.resident = set
	return set != nil, err
}

//go:build unix

package metal

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway/metal/mtl"
)

// copied is a run of mapped bytes [from, to) that the GPU has a copy of.
type copied struct {
	from, to uintptr
	buffer   *mtl.Buffer
}

// regionOf is the mapping that contains the bytes; nil when there is none.
func (d *Device) regionOf(bytes []byte) []byte {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
	for _, region := range d.opt.Mapped {
		if from := uintptr(unsafe.Pointer(unsafe.SliceData(region))); at >= from && at+uintptr(len(bytes)) <= from+
			uintptr(len(region)) {
			return region
		}
	}
	return nil
}

// copy makes a buffer of bytes. Mapped bytes are read in chunks, by enough readers to keep a disk busy, and the file's
// pages are dropped afterwards, so that weights are not held twice. Errors: no memory; a disk that fails under the
// mapping.
func (d *Device) copy(what string, bytes []byte) (*mtl.Buffer, error) {
	b, err := d.allocate(what, (len(bytes)+3)/4*4)
	if err != nil {
		return nil, err
	}
	if d.regionOf(bytes) == nil {
		copy(b.Bytes, bytes)
		return b, nil
	}
	chunks := divide(len(bytes), chunkBytes)
	err = inParallel(context.Background(), chunks, func(i int) error {
		from, to := i*chunkBytes, min((i+1)*chunkBytes, len(bytes))
		if err := copyChunk(b.Bytes[from:to], bytes[from:to]); err != nil {
			return err
		}
		letGo(bytes[from:to])
		return nil
	}, func(i int) {
		if d.opt.Copied != nil {
			d.opt.Copied(int64(min(chunkBytes, len(bytes)-i*chunkBytes)))
		}
	})
	if err != nil {
		d.free(b)
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := uintptr(unsafe.Pointer(&bytes[0]))
	d.copies = append(d.copies, copied{at, at + uintptr(len(bytes)), b})
	d.weights.CopiedBytes += int64(len(bytes))
	return b, nil
}

// copyChunk copies mapped memory. A disk that fails, or a file that was truncated, is an error and does not end the
// process.
func copyChunk(to, from []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer faulted(&err)
	unix.Madvise(pagesOf(from), unix.MADV_WILLNEED) // only advice: without it the pages are read one by one
	copy(to, from)
	return nil
}

// faulted turns a fault under a mapping into an error.
func faulted(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("the weights cannot be read from the disk any more: %v; see whether the disk works and "+
			"the files are whole, then start the server anew", fault)
	}
}

// pagesOf is the whole pages that contain bytes of a mapping.
func pagesOf(bytes []byte) []byte {
	page := uintptr(os.Getpagesize())
	before := uintptr(unsafe.Pointer(&bytes[0])) % page
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&bytes[0]), -int(before))),
		(before+uintptr(len(bytes))+page-1)/page*page)
}

// letGo drops the pages of a part of a file's mapping from our memory; the next read gets them from the file. Linux
// unmaps them; macOS makes them the first to be taken when memory is short (MADV_FREE would be for memory without a
// file).
func letGo(part []byte) { unix.Madvise(pagesOf(part), unix.MADV_DONTNEED) }

// uncopied is a region without the parts that were copied, from the page on which the rest begins.
func (d *Device) uncopied(region []byte) (rest [][]byte) {
	page, from := uintptr(os.Getpagesize()), uintptr(unsafe.Pointer(unsafe.SliceData(region)))
	runs := slices.Clone(d.copies)
	slices.SortFunc(runs, func(a, b copied) int { return int(a.from) - int(b.from) })
	at, end := from, from+uintptr(len(region))
	add := func(to uintptr) {
		if at < to {
			rest = append(rest, region[at/page*page-from:to-from])
		}
	}
	for _, r := range runs {
		if r.from >= at && r.to <= end {
			add(r.from)
			at = r.to
		}
	}
	add(end)
	return rest
}

//go:build unix

package metal

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway/metal/mtl"
)

// ReturnPages returns the memory of pages to the system: each buffer is released, so that the GPU holds none of it,
// fresh zero pages are mapped in the place of the pages, and the whole is wrapped again. Only whole pages of the system
// are returned.
func (k *kv) ReturnPages(pages []int32) error {
	runs := k.byteRuns(pages)
	if len(runs) == 0 {
		return nil
	}
	for _, b := range slices.Concat(k.keys, k.values) {
		if err := k.dev.remap(b, runs); err != nil && k.lost == nil {
			k.lost = fmt.Errorf("attention memory could not be mapped again after pages of it were returned to the "+
				"system: %w; restart the server", err)
		}
	}
	return k.lost
}

// byteRuns are the byte ranges [from, to) of pages in a layer's buffer, neighbours joined, shrunk to whole pages of the
// system.
func (k *kv) byteRuns(pages []int32) (runs [][2]int) {
	pages = slices.Sorted(slices.Values(pages))
	n, system := k.pageBytes(), os.Getpagesize()
	for i := 0; i < len(pages); {
		j := i + 1
		for j < len(pages) && pages[j] == pages[j-1]+1 {
			j++
		}
		from, to := divide(int(pages[i])*n, system)*system, (int(pages[j-1])+1)*n/system*system
		if from < to {
			runs = append(runs, [2]int{from, to})
		}
		i = j
	}
	return runs
}

// remap replaces runs of a buffer's mapping by zero pages while Metal does not hold it.
func (d *Device) remap(b *mtl.Buffer, runs [][2]int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var failed error
	err := d.gpu.Renew(b, func() {
		for _, r := range runs {
			_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&b.Bytes[r[0]]), uintptr(r[1]-r[0]),
				unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
			if err != nil {
				failed = err
			}
		}
	})
	if err == nil {
		err = failed
	}
	return err
}

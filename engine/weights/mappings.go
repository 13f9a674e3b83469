package weights

import (
	"os"
	"slices"
	"unsafe"
)

// gapBytes is the longest run of bytes between two tensors that Mappings does not cut out: below it a second mapping
// costs more than the memory.
const gapBytes = 16 << 20

// Mappings are the parts of the mapped files that the model's tensors lie in, vision left out, as runs that begin on a
// page of memory. A device may read them in place; they are valid until Close. Nil where files are not mapped but read.
func (c *Checkpoint) Mappings() (runs [][]byte) {
	if !canMap {
		return nil
	}
	page := os.Getpagesize()
	for _, f := range c.files {
		for _, s := range c.spans(f) {
			s.from = s.from / page * page
			runs = append(runs, f.data[s.from:s.to:s.to])
		}
	}
	if c.mtp != nil && c.mtp.sidecar != nil {
		runs = append(runs, c.mtp.sidecar.Mappings()...)
	}
	return runs
}

// span is [from, to) of a file, in bytes.
type span struct{ from, to int }

// spans are the ranges of a file with tensors, in order, joined where the gap between them is small.
func (c *Checkpoint) spans(f *file) (joined []span) {
	var all []span
	for _, t := range c.tensors {
		if t.File == f.name && len(t.Data) > 0 {
			from := int(uintptr(unsafe.Pointer(&t.Data[0])) - uintptr(unsafe.Pointer(&f.data[0])))
			all = append(all, span{from, from + len(t.Data)})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && s.from-joined[last].to <= gapBytes {
			joined[last].to = max(joined[last].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

//go:build unix

package metal

import (
	"context"
	"maps"
	"slices"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// Used returns and clears the names of the kernels that passes have run since the last call.
func (d *Device) Used() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := map[string]bool{}
	for v, p := range d.pipelines {
		names[v.name] = true
		p.Release()
	}
	d.pipelines = map[variant]*mtl.Pipeline{}
	return slices.Sorted(maps.Keys(names))
}

// MatrixBytes are the bytes of a matrix on the GPU.
func MatrixBytes(m device.Matrix) []byte {
	p := m.(*matrix).data
	return p.b.Bytes[p.offset : p.offset+int(m.Bytes())]
}

// Touch reads a mapping as Prefault does.
func Touch(region []byte) error {
	chunks := slices.Collect(slices.Chunk(region, chunkBytes))
	return inParallel(context.Background(), len(chunks), func(i int) error { return touch(chunks[i]) }, func(int) {})
}

// CopyAgain copies bytes and releases the copy.
func (d *Device) CopyAgain(bytes []byte) error {
	b, err := d.copy("a matrix", bytes)
	if err == nil {
		d.free(b)
		d.copies = nil
	}
	return err
}

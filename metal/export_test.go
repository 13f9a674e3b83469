//go:build unix

package metal

import (
	"context"
	"maps"
	"slices"

	"slipway/engine/device"
	"slipway/metal/mtl"
)

// Used takes out the names of the kernels that were made ready since the last call: what the passes since then ran.
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

// MatrixBytes are the data of a matrix as the GPU has them.
func MatrixBytes(m device.Matrix) []byte {
	p := m.(*matrix).data
	return p.b.Bytes[p.offset : p.offset+int(m.Bytes())]
}

// Touch reads a mapping as Prefault does.
func Touch(region []byte) error {
	chunks := slices.Collect(slices.Chunk(region, chunkBytes))
	return inParallel(context.Background(), len(chunks), func(i int) error { return touch(chunks[i]) }, func(int) {})
}

// CopyAgain copies bytes and gives the copy back.
func (d *Device) CopyAgain(bytes []byte) error {
	b, err := d.copy("a matrix", bytes)
	if err == nil {
		d.free(b)
		d.copies = nil
	}
	return err
}

//go:build unix

package metal

import (
	"maps"
	"slices"

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

//go:build unix

package metal

import (
	"unsafe"

	"slipway/metal/mtl"
)

const (
	// argumentAlign is the strictest alignment that Metal asks of constant memory, on any family.
	argumentAlign = 256
	// argumentBytes is a block of parameters, for 64 dispatches.
	argumentBytes = 16 << 10
)

// arguments holds the parameters of a pass's dispatches. Each place is written once and not again before
// the GPU is idle.
type arguments struct {
	blocks []*mtl.Buffer
	used   int // bytes, over all blocks
}

// write puts a parameter struct of n bytes in its place.
func (a *arguments) write(d *Device, params unsafe.Pointer, n int) (*mtl.Buffer, int, error) {
	block, at := a.used/argumentBytes, a.used%argumentBytes
	if block == len(a.blocks) {
		b, err := d.allocate("the parameters of kernels", argumentBytes)
		if err != nil {
			return nil, 0, err
		}
		a.blocks = append(a.blocks, b)
	}
	copy(a.blocks[block].Bytes[at:at+n], unsafe.Slice((*byte)(params), n))
	// argumentBytes is a multiple: no struct crosses blocks
	a.used += (n + argumentAlign - 1) / argumentAlign * argumentAlign
	return a.blocks[block], at, nil
}

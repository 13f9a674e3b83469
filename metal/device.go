//go:build unix

package metal

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"slipway/engine/device"
	"slipway/metal/kernels"
	"slipway/metal/mtl"
)

// Options of New. The zero value is right on a Mac.
type Options struct {
	// Libraries are where Metal is; empty means the system's.
	Libraries mtl.Libraries
	// Mapped is memory that matrices may be read from in place: whole mappings of weight files that nobody writes, each
	// beginning on a page. They must outlive the device. A matrix elsewhere, or not aligned to 16 bytes, is copied, and
	// its pages of the file are dropped.
	Mapped [][]byte
	// Copied, unless nil, receives how many more mapped bytes were copied, from one goroutine at a time.
	Copied func(bytes int64)
	// BF16 multiplies prefill's operands in bf16 instead of f16: less exact, and for models whose activations leave
	// f16's range.
	BF16 bool
	// Plain uses no fast kernel.
	Plain bool
	// Source gives a kernel file's text; nil means kernels.Source.
	Source func(name string) string
}

// Device is a GPU. It implements device.Device.
type Device struct {
	opt     Options
	runtime *mtl.Runtime
	gpu     *mtl.Device
	queue   *mtl.Queue
	facts   mtl.Facts

	mu        sync.Mutex // guards what follows
	libraries map[string]*mtl.Library
	pipelines map[variant]*mtl.Pipeline
	refused   map[string]error // by library: fast ones that are not used, and plain ones that do not compile
	order     []string         // in which they were refused
	views     []view
	copies    []copied
	heldBytes int64
	live      map[*mtl.Buffer]bool // buffers not released; true: over a mapping of ours
	weights   Weights
	resident  *mtl.ResidencySet // nil: none

	gpuSeconds float64

	// Of the pass that runs: there is one at a time.
	arguments arguments
	pace      float64 // seconds a byte that passes have taken; see encoder.cost
}

// leastFamily is M1's: below it simdgroups are not of 32 threads everywhere, and simdgroup matrices are missing.
const leastFamily = 7

// FamilyError is a GPU that the kernels are not written for.
type FamilyError struct{ Facts mtl.Facts }

func (e *FamilyError) Error() string {
	return fmt.Sprintf("%s is no GPU of Apple silicon (family Apple %d; %d is the least)", e.Facts.Name,
		e.Facts.AppleFamily, leastFamily)
}

// KernelError is a kernel that cannot run here and has no other variant.
type KernelError struct {
	Kernel string
	Err    error
}

func (e *KernelError) Error() string { return "kernel " + e.Kernel + ": " + e.Err.Error() }
func (e *KernelError) Unwrap() error { return e.Err }

// New opens the default GPU and compiles each kernel file. A file whose kernels have a plain variant elsewhere may fail
// to compile, and so may a plain one whose fast ones do not (see Degraded); any other failure is a *KernelError.
func New(opt Options) (d *Device, err error) {
	r, gpu, err := openGPU(opt.Libraries)
	if err != nil {
		return nil, err
	}
	if opt.Source == nil {
		opt.Source = kernels.Source
	}
	d = &Device{opt: opt, runtime: r, gpu: gpu, queue: gpu.NewQueue(), facts: gpu.Facts(), pace: startPace,
		libraries: map[string]*mtl.Library{}, pipelines: map[variant]*mtl.Pipeline{}, refused: map[string]error{},
		live: map[*mtl.Buffer]bool{}}
	if d.facts.AppleFamily < leastFamily {
		d.Close()
		return nil, &FamilyError{d.facts}
	}
	for _, name := range kernels.Names() {
		l, err := gpu.NewLibrary(opt.Source(name))
		if err == nil {
			d.libraries[name] = l
			continue
		}
		d.refuse(name, err)
	}
	if err := d.uncovered(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) Name() string { return "metal" }

// Numerics changes whenever a result may change by a bit: with the operands' type, and with every kernel file whose
// plain variant is used.
func (d *Device) Numerics() string {
	name := "metal-f16-4"
	if d.opt.BF16 {
		name = "metal-bf16-4"
	}
	if d.opt.Plain {
		return name + "-plain"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, file := range slices.Sorted(maps.Keys(d.refused)) {
		if !isPlain(file) {
			name += "-plain:" + file
		}
	}
	return name
}

// BF16 reports whether the operands of prefill are bf16.
func (d *Device) BF16() bool { return d.opt.BF16 }

// Facts describe the GPU.
func (d *Device) Facts() mtl.Facts { return d.facts }

// GPUSeconds is how long the GPU has worked on passes since New.
func (d *Device) GPUSeconds() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gpuSeconds
}

func (d *Device) addGPUSeconds(s float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gpuSeconds += s
}

// HeldBytes is the memory that the GPU holds: buffers, and every view of mapped weights once.
func (d *Device) HeldBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heldBytes
}

func openGPU(l mtl.Libraries) (r *mtl.Runtime, gpu *mtl.Device, err error) {
	if l.Metal == "" {
		if l, err = mtl.System(); err != nil {
			return nil, nil, err
		}
	}
	if r, err = mtl.Open(l); err != nil {
		return nil, nil, err
	}
	gpu, err = r.Device()
	return r, gpu, err
}

// Ask opens the default GPU only for its facts. Empty libraries mean the system's. Errors: as of New, except those of
// kernels.
func Ask(l mtl.Libraries) (mtl.Facts, error) {
	_, gpu, err := openGPU(l)
	if err != nil {
		return mtl.Facts{}, err
	}
	defer gpu.Release()
	facts := gpu.Facts()
	if facts.AppleFamily < leastFamily {
		return facts, &FamilyError{facts}
	}
	return facts, nil
}

// Close releases everything that was made with the device. Handles that the caller still has must not be used, but may
// be released.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gpu == nil {
		return nil // closed before
	}
	for _, p := range d.pipelines {
		p.Release()
	}
	for _, l := range d.libraries {
		l.Release()
	}
	if d.resident != nil {
		d.resident.Release()
		d.resident = nil
	}
	for _, v := range d.views {
		v.buffer.Release()
	}
	for b := range d.live {
		d.release(b)
	}
	d.pipelines, d.libraries, d.views, d.copies, d.heldBytes = nil, nil, nil, nil, 0
	d.queue.Release()
	d.gpu.Release()
	d.gpu = nil
	return nil
}

func (d *Device) Vector(data []float32) (device.Buffer, error) {
	b, err := d.newBuffer("a vector", 1, len(data))
	if err != nil {
		return nil, err
	}
	copy(b.Floats(), data)
	return b, nil
}

func (d *Device) Buffer(rows, cols int) (device.Buffer, error) {
	b, err := d.newBuffer(fmt.Sprintf("a buffer of [%d,%d]", rows, cols), rows, cols)
	if err != nil {
		return nil, err // never a nil buffer in a non-nil interface
	}
	return b, nil
}

// u32 turns a size of ours into a parameter.
func u32(n int) uint32 {
	if n < 0 || n > math.MaxUint32 {
		panic(fmt.Sprintf("metal: %d as a kernel's parameter", n))
	}
	return uint32(n)
}

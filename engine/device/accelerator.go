package device

import (
	"context"
	"fmt"
)

// Accelerator is a GPU that a program provides. The engine opens it through this interface, so that no engine package
// links a binding.
type Accelerator interface {
	Name() string // as --device names it
	// Missing is why this machine has none; nil when it may have one.
	Missing() error
	// Preferred reports whether it is tried when no device was asked for.
	Preferred() bool
	KVFormats() []string      // as Device.KVFormats
	OperandFormats() []string // of the operands that prefill multiplies, the exact one first
	// Open tests the GPU and returns it; a GPU that gives wrong results is an error.
	Open(opt AcceleratorOptions) (GPU, error)
}

// AcceleratorOptions say what a GPU is opened for.
type AcceleratorOptions struct {
	Weights [][]byte         // mapped files, read in place where that is possible
	BF16    bool             // operands of prefill in bf16 instead of f16: a wider range, less exact
	Copied  func(more int64) // bytes of weights that were copied, as it goes
}

// GPU is an open accelerator.
type GPU interface {
	Device
	Degraded() []string  // sentences: kernels that cannot be used here, and what is used instead
	GPUSeconds() float64 // that passes took since it was opened, by its own clock
	// Ready reads into memory those weights that were not copied and asks that they stay there. progress is called with
	// the bytes read so far and those to read.
	Ready(ctx context.Context, progress func(done, total int64)) (Residency, error)
}

// Residency says where a GPU's weights are.
type Residency struct {
	InPlaceBytes, CopiedBytes  int64
	HeldBytes, WorkingSetBytes int64
	Resident                   bool
	Refused                    error // why they may stop being resident when memory is short; nil: they stay
}

// MemoryError is a request for more than a device may hold on this machine.
type MemoryError struct {
	What                    string
	Bytes, Held, WorkingSet int64
	Weights                 bool // for a matrix
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs %d bytes; the GPU holds %d already and may use %d on this machine",
		e.What, e.Bytes, e.Held, e.WorkingSet)
}

// RangeError is an activation, key or value that does not fit into the 16 bits of a matrix operand or of the cache.
type RangeError struct{ BF16 bool }

func (e *RangeError) Error() string {
	if e.BF16 {
		return "a key or value is beyond ±65504, the range of the f16 cache"
	}
	return "an activation is beyond ±65504, the range of f16; run the device with bf16 operands"
}

// FormError is an operation in a form that only one kernel file supports, and this file cannot be used here. The device
// works for other models.
type FormError struct {
	File   string
	Forms  string // what it alone supports, in words
	Matrix bool   // the form is one of weights
	Err    error
}

func (e *FormError) Error() string {
	return fmt.Sprintf("this model has %s: they go by %s alone, which cannot be used here (%v)", e.Forms, e.File, e.Err)
}

func (e *FormError) Unwrap() error { return e.Err }

// UnusableFile is the kernel file.
func (e *FormError) UnusableFile() string { return e.File }

package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// Device is the CPU. It implements device.Device.
type Device struct{ pool *pool }

// New starts a device with this many threads, the caller's included; 0 means one for each processor that Go may use.
func New(threads int) *Device {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &Device{pool: newPool(threads - 1)}
}

func (d *Device) Name() string { return "cpu" }

// Numerics changes whenever a result may change by a bit.
func (d *Device) Numerics() string { return "cpu-f32-1" }

// Threads is the number of threads that share a pass.
func (d *Device) Threads() int { return d.pool.background + 1 }

func (d *Device) Close() error {
	d.pool.close()
	return nil
}

func (d *Device) Matrix(m device.MatrixData) (device.Matrix, error) {
	var packed *kernels.Matrix
	var err error
	if m.Format == device.FormatAffine {
		packed, err = kernels.PackAffine(kernels.Affine{Out: m.Out, In: m.In, Bits: m.Bits, Group: m.Group,
			Codes: m.Data, Scales: m.Scales, Biases: m.Biases, ScaleType: dtype(m.ScaleFormat)})
	} else {
		packed, err = kernels.PackDense(m.Out, m.In, m.Data, dtype(m.Format))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return matrix{packed}, nil
}

func dtype(f device.Format) kernels.DType {
	switch f {
	case device.FormatF32:
		return kernels.F32
	case device.FormatF16:
		return kernels.F16
	case device.FormatBF16:
		return kernels.BF16
	}
	panic(fmt.Sprintf("cpu: format %d is not a float", f))
}

type matrix struct{ *kernels.Matrix }

func (m matrix) Bytes() int64 { return int64(m.Matrix.Bytes()) }

func (d *Device) Vector(data []float32) (device.Buffer, error) {
	b := newBuffer(1, len(data))
	copy(b.f, data)
	return b, nil
}

func (d *Device) Buffer(rows, cols int) (device.Buffer, error) { return newBuffer(rows, cols), nil }

// buffer is [rows, cols], row-major, beginning on a cache line.
type buffer struct {
	rows, cols int
	f          []float32
}

func newBuffer(rows, cols int) *buffer {
	return &buffer{rows: rows, cols: cols, f: aligned(rows * cols)}
}

// aligned returns n zero floats that begin at a multiple of 64 bytes.
func aligned(n int) []float32 {
	f := make([]float32, n+15)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(f)))%64) / 4
	return f[skip : skip+n : skip+n]
}

func (b *buffer) Rows() int         { return b.rows }
func (b *buffer) Cols() int         { return b.cols }
func (b *buffer) Floats() []float32 { return b.f }
func (b *buffer) Release()          { b.f, b.rows = nil, 0 }

func (b *buffer) row(i int) []float32 { return b.f[i*b.cols : (i+1)*b.cols : (i+1)*b.cols] }

//go:build unix

package mtl

import (
	"fmt"
	"os"
	"unsafe"
)

// Families of GPUs, as MTLGPUFamily numbers them.
const (
	familyApple1  = 1001
	familyApple20 = 1020 // far above what there is
	familyMetal3  = 5001
	familyMetal4  = 5002
)

const (
	languageVersion31  = 3<<16 + 1 // Metal 3.1, macOS 14
	dataTypeUInt       = 33
	storageShared      = 0 // hazards tracked between command buffers
	dispatchConcurrent = 1
	barrierBuffers     = 1
	statusError        = 5
)

// Device is the machine's GPU.
type Device struct {
	r  *Runtime
	id object
}

// Device opens the default device.
func (r *Runtime) Device() (*Device, error) {
	id := r.createDevice()
	if id == 0 {
		return nil, ErrNoDevice
	}
	return &Device{r, id}, nil
}

// Facts describe a device, as Metal reports it.
type Facts struct {
	Name            string
	AppleFamily     int // 7 is M1; 0: none of Apple's
	Metal3, Metal4  bool
	UnifiedMemory   bool
	ResidencySets   bool  // macOS 15
	WorkingSetBytes int64 // recommendedMaxWorkingSetSize
	MaxBufferBytes  int64
}

func (d *Device) Facts() Facts {
	var f Facts
	d.r.Pool(func() error {
		f.Name = d.r.goString(object(d.r.message(d.id, selName)))
		return nil
	})
	family := func(n uintptr) bool { return truth(d.r.message(d.id, selSupportsFamily, n)) }
	for n := familyApple20; n >= familyApple1 && f.AppleFamily == 0; n-- {
		if family(uintptr(n)) {
			f.AppleFamily = n - familyApple1 + 1
		}
	}
	f.Metal3, f.Metal4 = family(familyMetal3), family(familyMetal4)
	f.ResidencySets = d.residencySets()
	f.UnifiedMemory = truth(d.r.message(d.id, selUnifiedMemory))
	f.WorkingSetBytes = int64(d.r.message(d.id, selWorkingSet))
	f.MaxBufferBytes = int64(d.r.message(d.id, selMaxBufferLength))
	return f
}

// Release releases the device, after everything that was made with it.
func (d *Device) Release() { d.r.message(d.id, selRelease) }

// Buffer is memory that GPU and host see. Bytes is nil for a buffer over mapped memory, until its maker sets it.
type Buffer struct {
	r      *Runtime
	id     object
	Bytes  []byte
	Length int
}

// NewBuffer makes n bytes of unspecified content.
func (d *Device) NewBuffer(n int) (*Buffer, error) {
	if n <= 0 {
		panic("mtl: an empty buffer")
	}
	id := object(d.r.message(d.id, selNewBuffer, uintptr(n), storageShared))
	if id == 0 {
		return nil, fmt.Errorf("no buffer of %d bytes from Metal", n)
	}
	return &Buffer{d.r, id, unsafe.Slice((*byte)(address(d.r.message(id, selContents))), n), n}, nil
}

// NewBufferOver wraps whole pages of memory that is not Go's, without a copy. The memory must outlive the buffer.
func (d *Device) NewBufferOver(at unsafe.Pointer, n int) (*Buffer, error) {
	if page := os.Getpagesize(); uintptr(at)%uintptr(page) != 0 || n <= 0 || n%page != 0 {
		panic(fmt.Sprintf("mtl: %d bytes at %p are not whole pages", n, at))
	}
	id := object(d.r.message(d.id, selNewBufferNoCopy, uintptr(at), uintptr(n), storageShared, uintptr(noBlock)))
	if id == 0 {
		return nil, fmt.Errorf("no buffer from Metal over %d mapped bytes", n)
	}
	return &Buffer{d.r, id, nil, n}, nil
}

// Renew releases a buffer over mapped memory, calls between, which may map other pages there, and wraps the memory
// again. No command buffer may use it meanwhile. On error the buffer must not be used again.
func (d *Device) Renew(b *Buffer, between func()) error {
	b.Release()
	between()
	again, err := d.NewBufferOver(unsafe.Pointer(&b.Bytes[0]), b.Length)
	if err != nil {
		b.id = 0
		return err
	}
	b.id = again.id
	return nil
}

// Release releases the buffer. No command buffer may still use it.
func (b *Buffer) Release() {
	if b.id != 0 {
		b.r.message(b.id, selRelease)
	}
}

func (d *Device) residencySets() bool {
	return truth(d.r.message(d.id, selResponds, uintptr(d.r.selectors[selNewResidencySet])))
}

// ResidencySet is a set of buffers that stay resident for the GPU.
type ResidencySet struct {
	r         *Runtime
	id, queue object
}

// Resident asks Metal to keep buffers resident as long as the queue exists (macOS 15). Nil where there are no residency
// sets.
func (d *Device) Resident(q *Queue, buffers []*Buffer) (set *ResidencySet, err error) {
	if !d.residencySets() {
		return nil, nil
	}
	err = d.r.Pool(func() error {
		descriptor := object(d.r.message(d.r.class("MTLResidencySetDescriptor"), selNew))
		defer d.r.message(descriptor, selRelease)
		d.r.message(descriptor, selSetCapacity, uintptr(len(buffers)))
		var refusal object
		id := object(d.r.message(d.id, selNewResidencySet, uintptr(descriptor), uintptr(unsafe.Pointer(&refusal))))
		if id == 0 {
			return d.r.nsError("residency set", refusal)
		}
		for _, b := range buffers {
			d.r.message(id, selAddAllocation, uintptr(b.id))
		}
		d.r.message(id, selCommit)
		d.r.message(id, selRequestResidency)
		d.r.message(q.id, selAddResidencySet, uintptr(id))
		set = &ResidencySet{d.r, id, q.id}
		return nil
	})
	return set, err
}

// Release ends the residency. Call it before the buffers are released. No command buffer may still use them.
func (s *ResidencySet) Release() {
	s.r.message(s.queue, selRemoveResidencySet, uintptr(s.id))
	s.r.message(s.id, selEndResidency)
	s.r.message(s.id, selRelease)
}

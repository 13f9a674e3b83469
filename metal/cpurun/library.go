//go:build unix

package cpurun

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a compiled source. Runs of one library go one after another, because its function constants are globals.
type Library struct {
	Source *Source
	name   string
	handle uintptr
	mu     sync.Mutex
	run    func(kernel uintptr, arguments, grid, group unsafe.Pointer, seed uint64, threads uint32) int32
}

func open(name, path string, source *Source) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l := &Library{Source: source, name: name, handle: handle}
	purego.RegisterLibFunc(&l.run, handle, "msl_run")
	return l, nil
}

// Dispatch is one run of a kernel.
type Dispatch struct {
	Kernel    string
	Constants map[int]uint32         // function constants by index
	Buffers   map[int]unsafe.Pointer // by index; memory that stays where it is, and alive
	Grid      [3]uint32              // threadgroups
	Group     [3]uint32              // threads of one
	Seed      uint64                 // of every order
	Threads   int                    // OS threads; 0 means 1
}

// RunError is a rule of Metal that a kernel broke.
type RunError struct{ Kernel, What string }

func (e *RunError) Error() string { return e.Kernel + ": " + e.What }

var failures = map[int32]string{
	1: "some threads wait at a barrier or a simdgroup operation that others never reach",
	2: "a threadgroup array was written past its end",
	3: "more than 32 KiB of threadgroup memory",
	4: "threads of one simdgroup met in different operations",
}

// Run runs a dispatch to its end. A kernel that leaves its buffers ends the process, as the guard pages intend.
func (l *Library) Run(d Dispatch) error {
	kernel, err := purego.Dlsym(l.handle, "mslk_"+d.Kernel)
	if err != nil {
		return &RunError{d.Kernel, "there is no such kernel in " + l.name}
	}
	if n := d.Group[0] * d.Group[1] * d.Group[2]; n == 0 || n > 1024 {
		return &RunError{d.Kernel, fmt.Sprintf("%d threads in a threadgroup, not 1 to 1024", n)}
	}
	if d.Grid[0]*d.Grid[1]*d.Grid[2] == 0 {
		return &RunError{d.Kernel, "an empty grid"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for index, value := range d.Constants {
		if err := l.setConstant(index, value); err != nil {
			return err
		}
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	var arguments [31]unsafe.Pointer
	for i, p := range d.Buffers {
		pin.Pin(p)
		arguments[i] = p
	}
	if code := l.run(kernel, unsafe.Pointer(&arguments), unsafe.Pointer(&d.Grid), unsafe.Pointer(&d.Group), d.Seed,
		uint32(max(1, d.Threads))); code != 0 {
		return &RunError{d.Kernel, failures[code]}
	}
	return nil
}

func (l *Library) setConstant(index int, value uint32) error {
	at, err := purego.Dlsym(l.handle, fmt.Sprintf("mslc_%d", index))
	if err != nil {
		return &RunError{l.name, fmt.Sprintf("there is no function constant %d", index)}
	}
	for _, c := range l.Source.Constants {
		if c.Index == index && c.Type == "bool" {
			**(**bool)(address(at)) = value != 0
			return nil
		}
	}
	**(**uint32)(address(at)) = value
	return nil
}

// address turns an address outside Go's memory into a pointer.
func address(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// Layout returns what clang made of a parameter struct: its size, then the offset of every field.
func (l *Library) Layout(s Struct) ([]uint32, error) {
	at, err := purego.Dlsym(l.handle, "msls_"+s.Name)
	if err != nil {
		return nil, err
	}
	return append([]uint32(nil), unsafe.Slice((*uint32)(address(at)), 1+len(s.Fields))...), nil
}

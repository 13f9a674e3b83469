//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// driver is the part of CUDA's driver that the rates are measured with, on the thread that opened it.
type driver struct {
	memAlloc      func(at *uintptr, bytes uintptr) int32
	memFree       func(at uintptr) int32
	memsetD32     func(at uintptr, value uint32, words uintptr) int32
	copyToDevice  func(at uintptr, from unsafe.Pointer, bytes uintptr) int32
	moduleLoad    func(module *uintptr, image unsafe.Pointer, options uint32, names, values unsafe.Pointer) int32
	getFunction   func(function *uintptr, module uintptr, name string) int32
	getAttribute  func(value *int32, attribute int32, function uintptr) int32
	eventCreate   func(event *uintptr, flags uint32) int32
	eventRecord   func(event, stream uintptr) int32
	eventWait     func(event uintptr) int32
	eventElapsed  func(milliseconds *float32, from, to uintptr) int32
	launch        uintptr
	from, to      uintptr // events
	busy          uintptr // a kernel that takes a while, and its buffers
	busyWith      [31]uintptr
	name, version string
}

func openDriver() (*driver, error) {
	library, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("this needs an NVIDIA GPU and its driver: %w", err)
	}
	runtime.LockOSThread() // a context is current on a thread
	d := &driver{}
	var initialise func(flags uint32) int32
	var getDevice func(device *int32, n int32) int32
	var getName func(name *byte, n, device int32) int32
	var getVersion func(version *int32) int32
	var retain func(context *uintptr, device int32) int32
	var setCurrent func(context uintptr) int32
	for name, to := range map[string]any{
		"cuInit": &initialise, "cuDeviceGet": &getDevice, "cuDeviceGetName": &getName,
		"cuDriverGetVersion": &getVersion, "cuDevicePrimaryCtxRetain": &retain, "cuCtxSetCurrent": &setCurrent,
		"cuMemAlloc_v2": &d.memAlloc, "cuMemFree_v2": &d.memFree, "cuMemsetD32_v2": &d.memsetD32,
		"cuMemcpyHtoD_v2": &d.copyToDevice, "cuModuleLoadDataEx": &d.moduleLoad,
		"cuModuleGetFunction": &d.getFunction, "cuFuncGetAttribute": &d.getAttribute, "cuEventCreate": &d.eventCreate,
		"cuEventRecord":      &d.eventRecord,
		"cuEventSynchronize": &d.eventWait, "cuEventElapsedTime": &d.eventElapsed,
	} {
		purego.RegisterLibFunc(to, library, name)
	}
	if d.launch, err = purego.Dlsym(library, "cuLaunchKernel"); err != nil {
		return nil, err
	}
	var device, version int32
	var context uintptr
	text := make([]byte, 128)
	must("the driver", initialise(0))
	must("the device", getDevice(&device, 0))
	must("its name", getName(&text[0], 128, device))
	must("the driver's version", getVersion(&version))
	must("a context", retain(&context, device))
	must("a context", setCurrent(context))
	must("an event", d.eventCreate(&d.from, 0))
	must("an event", d.eventCreate(&d.to, 0))
	for n, b := range text {
		if b == 0 {
			d.name = string(text[:n])
			break
		}
	}
	d.version = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	return d, nil
}

// must ends the program: after an error of the driver nothing that follows means anything.
func must(what string, code int32) {
	if code != 0 {
		fmt.Fprintf(os.Stderr, "cuda: %s: error %d\n", what, code)
		os.Exit(1)
	}
}

// alloc is n bytes of the device's memory, filled with a word.
func (d *driver) alloc(n int, word uint32) (at uintptr) {
	must(fmt.Sprintf("%d bytes", n), d.memAlloc(&at, uintptr(n+255)))
	must("filling memory", d.memsetD32(at, word, uintptr((n+3)/4)))
	return at
}

// fill is n bytes of the device's memory, filled with a block again and again.
func (d *driver) fill(n int, block []uint64) (at uintptr) {
	must(fmt.Sprintf("%d bytes", n), d.memAlloc(&at, uintptr(n+255)))
	for done := 0; done < n; done += 8 * len(block) {
		must("copying", d.copyToDevice(at+uintptr(done), unsafe.Pointer(&block[0]), uintptr(min(8*len(block), n-done))))
	}
	return at
}

// put is a copy of values in the device's memory.
func put[T any](d *driver, values []T) (at uintptr) {
	n := len(values) * int(unsafe.Sizeof(values[0]))
	must("memory", d.memAlloc(&at, uintptr(n)))
	must("copying", d.copyToDevice(at, unsafe.Pointer(&values[0]), uintptr(n)))
	return at
}

// function is a kernel of a PTX file, with the registers that it takes: at most so many, where most is not 0.
func (d *driver) function(dir, mark, name string, most int) (f uintptr, registers int) {
	image, err := os.ReadFile(filepath.Join(dir, mark+".ptx"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	image = append(image, 0)
	var module uintptr
	var maxRegisters int32 // CU_JIT_MAX_REGISTERS
	limit := uintptr(most)
	options := uint32(0)
	if most != 0 {
		options = 1
	}
	must("loading "+name, d.moduleLoad(&module, unsafe.Pointer(&image[0]), options, unsafe.Pointer(&maxRegisters),
		unsafe.Pointer(&limit)))
	must("finding "+name, d.getFunction(&f, module, "mslk_"+name))
	var n int32
	must("registers of "+name, d.getAttribute(&n, 4, f))
	return f, int(n)
}

// start launches f with its buffers by index.
func (d *driver) start(f uintptr, grid, group [3]int, buffers *[31]uintptr) {
	parameters := [1]unsafe.Pointer{unsafe.Pointer(buffers)}
	code, _, _ := purego.SyscallN(d.launch, f, uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(group[0]),
		uintptr(group[1]), uintptr(group[2]),
		0, 0, uintptr(unsafe.Pointer(&parameters[0])), 0)
	runtime.KeepAlive(buffers)
	must("a launch", int32(code))
}

// seconds is the device's time for what run launches.
func (d *driver) seconds(run func()) float64 {
	must("an event", d.eventRecord(d.from, 0))
	run()
	must("an event", d.eventRecord(d.to, 0))
	must("the launches", d.eventWait(d.to))
	var ms float32
	must("time", d.eventElapsed(&ms, d.from, d.to))
	return float64(ms) / 1e3
}

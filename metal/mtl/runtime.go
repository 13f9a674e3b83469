//go:build unix

package mtl

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Libraries are the paths to open. Preload is opened first and kept: MTLCreateSystemDefaultDevice needs CoreGraphics in
// a program without windows.
type Libraries struct {
	Preload     []string
	ObjC, Metal string
}

// ErrNoDevice means that Metal is there and has no device.
var ErrNoDevice = errors.New("no Metal device on this machine")

// Runtime is the opened libraries.
type Runtime struct {
	send         uintptr // objc_msgSend
	sendDouble   func(to object, method method) float64
	class        func(name string) object
	createDevice func() object
	selectors    [selectorCount]method
	calls        atomic.Int64
}

// object is an id of Objective-C, method a SEL: types of their own, so that a test sees what a message is given.
type (
	object uintptr
	method uintptr
)

// noBlock is the nil block.
const noBlock object = 0

// flag is a BOOL.
func flag(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// Open loads the libraries.
func Open(l Libraries) (*Runtime, error) {
	for _, path := range l.Preload {
		if _, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_GLOBAL); err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
	}
	metal, err := purego.Dlopen(l.Metal, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", l.Metal, err)
	}
	objc, err := purego.Dlopen(l.ObjC, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", l.ObjC, err)
	}
	r := &Runtime{}
	var register func(string) method
	for _, f := range []struct {
		library uintptr
		name    string
		to      any
	}{{objc, "sel_registerName", &register}, {objc, "objc_getClass", &r.class}, {objc, "objc_msgSend", &r.sendDouble},
		{metal, "MTLCreateSystemDefaultDevice", &r.createDevice}} {
		at, err := purego.Dlsym(f.library, f.name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(f.to, at)
		if f.name == "objc_msgSend" {
			r.send = at
		}
	}
	for i, s := range selectorTable {
		r.selectors[i] = register(s.name)
	}
	return r, nil
}

// Calls counts the messages sent since Open.
func (r *Runtime) Calls() int64 { return r.calls.Load() }

// message sends one message. Each argument is a whole number, a flag, or uintptr(x), x being an object, a method or an
// unsafe.Pointer; the result is converted to an object, an address or a bool at once. A test compares both with
// selectorTable. Arguments that are uintptr(unsafe.Pointer(&x)) stay alive and in place for the call.
//
//go:uintptrescapes
func (r *Runtime) message(to object, s selector, arguments ...uintptr) uintptr {
	if to == 0 {
		panic("mtl: " + selectorTable[s].name + " to nothing")
	}
	r.calls.Add(1)
	var result uintptr
	switch receiver, method := uintptr(to), uintptr(r.selectors[s]); len(arguments) {
	case 0:
		result, _, _ = purego.SyscallN(r.send, receiver, method)
	case 1:
		result, _, _ = purego.SyscallN(r.send, receiver, method, arguments[0])
	case 2:
		result, _, _ = purego.SyscallN(r.send, receiver, method, arguments[0], arguments[1])
	case 3:
		result, _, _ = purego.SyscallN(r.send, receiver, method, arguments[0], arguments[1], arguments[2])
	case 4:
		result, _, _ = purego.SyscallN(r.send, receiver, method, arguments[0], arguments[1], arguments[2], arguments[3])
	default:
		panic("mtl: more than four arguments")
	}
	return result
}

// double sends a message whose result is in a floating-point register.
func (r *Runtime) double(to object, s selector) float64 {
	r.calls.Add(1)
	return r.sendDouble(to, r.selectors[s])
}

// nsRange is NSRange.
type nsRange struct{ location, length uintptr }

// ranged sends a message with two pointers and an NSRange by value: 16 bytes, in two registers on arm64 and x86-64.
//
//go:uintptrescapes
func (r *Runtime) ranged(to object, s selector, a, b uintptr, of nsRange) {
	r.calls.Add(1)
	purego.SyscallN(r.send, uintptr(to), uintptr(r.selectors[s]), a, b, of.location, of.length)
}

// size3 is MTLSize.
type size3 struct{ w, h, d uint64 }

// sizes sends a message with two MTLSize by value: on arm64 pointers to copies (composites above 16 bytes), on x86-64
// on the stack.
func (r *Runtime) sizes(to object, s selector, a, b size3) {
	r.calls.Add(1)
	if runtime.GOARCH == "arm64" {
		purego.SyscallN(r.send, uintptr(to), uintptr(r.selectors[s]), uintptr(unsafe.Pointer(&a)),
			uintptr(unsafe.Pointer(&b)))
		return
	}
	purego.SyscallN(r.send, uintptr(to), uintptr(r.selectors[s]), 0, 0, 0, 0, uintptr(a.w), uintptr(a.h), uintptr(a.d),
		uintptr(b.w), uintptr(b.h), uintptr(b.d))
}

// Pool runs f in an autorelease pool, on one OS thread, because pools belong to threads.
func (r *Runtime) Pool(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := object(r.message(r.class("NSAutoreleasePool"), selNew))
	defer r.message(pool, selDrain)
	return f()
}

// nsString is autoreleased.
func (r *Runtime) nsString(s string) object {
	text := append([]byte(s), 0)
	return object(r.message(r.class("NSString"), selString, uintptr(unsafe.Pointer(&text[0]))))
}

// goString copies an NSString.
func (r *Runtime) goString(text object) string {
	if text == 0 {
		return ""
	}
	at := (*byte)(address(r.message(text, selUTF8)))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(at, n))
}

// nsError turns an NSError into a Go error; what names what was tried.
func (r *Runtime) nsError(what string, refusal object) error {
	if refusal == 0 {
		return fmt.Errorf("%s: Metal gave no reason", what)
	}
	return fmt.Errorf("%s: %s", what, r.goString(object(r.message(refusal, selDescription))))
}

// address turns an address outside Go's memory into a pointer.
func address(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

func truth(answer uintptr) bool { return answer&0xFF != 0 }

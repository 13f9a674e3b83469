//go:build unix

package mac

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// PowerLibraries are the paths to open.
type PowerLibraries struct{ CoreFoundation, IOKit string }

// Power prevents automatic sleep. A person can still put the machine to sleep.
type Power struct {
	makeString func(allocator, text unsafe.Pointer, encoding uint32) uintptr
	free       func(object uintptr)
	create     func(kind uintptr, level uint32, name uintptr, id *uint32) int32
	release    func(id uint32) int32
}

const (
	utf8        = 0x08000100 // kCFStringEncodingUTF8
	levelOn     = 255        // kIOPMAssertionLevelOn
	noIdleSleep = "PreventUserIdleSystemSleep"
)

// OpenPower loads the libraries.
func OpenPower(l PowerLibraries) (*Power, error) {
	p := &Power{}
	for _, f := range []struct {
		library, name string
		to            any
	}{{l.CoreFoundation, "CFStringCreateWithCString", &p.makeString}, {l.CoreFoundation, "CFRelease", &p.free},
		{l.IOKit, "IOPMAssertionCreateWithName", &p.create}, {l.IOKit, "IOPMAssertionRelease", &p.release}} {
		handle, err := purego.Dlopen(f.library, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", f.library, err)
		}
		at, err := purego.Dlsym(handle, f.name)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(f.to, at)
	}
	return p, nil
}

// Hold keeps the machine awake until release is called, which may be done more than once. why is shown by macOS (pmset
// -g assertions). The system ends the hold with the process.
func (p *Power) Hold(why string) (release func(), err error) {
	kind, name := p.cfString(noIdleSleep), p.cfString(why)
	if kind == 0 || name == 0 {
		return nil, fmt.Errorf("macOS could not make a string of %q", why)
	}
	defer p.free(kind)
	defer p.free(name)
	var id uint32
	if code := p.create(kind, levelOn, name, &id); code != 0 {
		return nil, fmt.Errorf("macOS refused to prevent sleep (IOReturn %#x)", uint32(code))
	}
	return sync.OnceFunc(func() { p.release(id) }), nil
}

// cfString is the caller's to free.
func (p *Power) cfString(s string) uintptr {
	text := append([]byte(s), 0)
	return p.makeString(nil, unsafe.Pointer(&text[0]), utf8)
}

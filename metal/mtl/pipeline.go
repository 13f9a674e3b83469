//go:build unix

package mtl

import (
	"fmt"
	"unsafe"
)

// Library is a compiled source.
type Library struct {
	d  *Device
	id object
}

// NewLibrary compiles a source as Metal 3.1 without fast math. The error holds the compiler's messages.
func (d *Device) NewLibrary(source string) (l *Library, err error) {
	r := d.r
	err = r.Pool(func() error {
		options := object(r.message(r.class("MTLCompileOptions"), selNew))
		defer r.message(options, selRelease)
		r.message(options, selSetLanguage, languageVersion31)
		r.message(options, selSetFastMath, flag(false))
		var refusal object
		id := object(r.message(d.id, selNewLibrary, uintptr(r.nsString(source)), uintptr(options),
			uintptr(unsafe.Pointer(&refusal))))
		if id == 0 {
			return r.nsError("compiling", refusal)
		}
		l = &Library{d, id}
		return nil
	})
	return l, err
}

// Release releases the library. Its pipelines stay usable.
func (l *Library) Release() { l.d.r.message(l.id, selRelease) }

// Pipeline is a kernel ready to run.
type Pipeline struct {
	r          *Runtime
	id         object
	Name       string
	MaxThreads int // of a threadgroup
}

// NewPipeline makes a kernel with its function constants, by index.
func (l *Library) NewPipeline(name string, constants []uint32) (p *Pipeline, err error) {
	r := l.d.r
	err = r.Pool(func() error {
		var refusal object
		var function object
		if len(constants) == 0 {
			function = object(r.message(l.id, selNewFunction, uintptr(r.nsString(name))))
		} else {
			values := object(r.message(r.class("MTLFunctionConstantValues"), selNew))
			defer r.message(values, selRelease)
			for i := range constants {
				r.message(values, selSetConstant, uintptr(unsafe.Pointer(&constants[i])), dataTypeUInt, uintptr(i))
			}
			function = object(r.message(l.id, selNewFunctionConstants, uintptr(r.nsString(name)), uintptr(values),
				uintptr(unsafe.Pointer(&refusal))))
		}
		if function == 0 {
			return r.nsError("kernel "+name, refusal)
		}
		defer r.message(function, selRelease)
		id := object(r.message(l.d.id, selNewPipeline, uintptr(function), uintptr(unsafe.Pointer(&refusal))))
		if id == 0 {
			return r.nsError("kernel "+name, refusal)
		}
		p = &Pipeline{r, id, name, int(r.message(id, selMaxThreads))}
		if width := r.message(id, selSimdWidth); width != 32 {
			p.Release()
			return fmt.Errorf("kernel %s: simdgroups of %d threads; the kernels are written for 32", name, width)
		}
		return nil
	})
	return p, err
}

// Release releases the pipeline.
func (p *Pipeline) Release() { p.r.message(p.id, selRelease) }

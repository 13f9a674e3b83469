//go:build unix

package fake

import (
	_ "embed"
	"errors"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"slipway/metal/cpurun"
	"slipway/metal/mtl"
)

//go:embed library/fake.cpp
var code string

// Configuration is what the fake pretends and does. The comment of a field says what its zero value means.
type Configuration struct {
	Seed            uint64
	SkipBarrier     int   // this barrier, counted from 1, is ignored; 0: none
	FailCommit      int   // this command buffer, counted from 1, ends in an error; 0: none
	Threads         int   // OS threads of a dispatch; 0: 1
	DelayMicros     int   // a commit waits up to this long before it begins
	DispatchMicros  int   // the GPU's clock says that a dispatch took this long; 0: what it took
	WorkingSetBytes int64 // 0: 16 GiB
	MaxBufferBytes  int64 // 0: 8 GiB
	NoResidencySets bool  // as before macOS 15
	Family          int   // of Apple's GPUs; 0: 9
	NoWork          bool  // kernels do nothing
}

// Counters count since Configure.
type Counters struct {
	Calls, Dispatches, Barriers, Commits, Buffers, BufferBytes, MappedBytes, ResidentBytes,
	MostInFlight uint64
}

type configuration struct {
	seed                    uint64
	skipBarrier, failCommit int64
	threads, delay          uint32
	workingSet, maxBuffer   uint64
	residency, dispatch     uint32
	family                  uint32
	idle                    uint32
}

var (
	configure   func(*configuration)
	counters    func(*Counters)
	setCompiler func(uintptr)
)

var load = sync.OnceValues(func() (mtl.Libraries, error) {
	path, err := Build()
	if err != nil {
		return mtl.Libraries{}, err
	}
	_, err = loadFrom(path)
	if err != nil {
		return mtl.Libraries{}, err
	}
	setCompiler(purego.NewCallback(compile))
	return mtl.Libraries{Metal: path, ObjC: path}, nil
})

// Build compiles the fake and returns the path of its shared object, in the user's cache.
func Build() (string, error) { return cpurun.Shared("fake.cpp", code) }

func loadFrom(path string) (uintptr, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	purego.RegisterLibFunc(&configure, handle, "fake_configure")
	purego.RegisterLibFunc(&counters, handle, "fake_counters")
	purego.RegisterLibFunc(&setCompiler, handle, "fake_set_compiler")
	return handle, nil
}

// OpenOver loads a fake that was built before and lets a backend run its kernels: the argument of fake_set_backend in
// fake.cpp.
func OpenOver(path string, backend uintptr, c Configuration) (mtl.Libraries, error) {
	handle, err := loadFrom(path)
	if err != nil {
		return mtl.Libraries{}, err
	}
	var set func(uintptr)
	purego.RegisterLibFunc(&set, handle, "fake_set_backend")
	set(backend)
	Configure(c)
	return mtl.Libraries{Metal: path, ObjC: path}, nil
}

// Open builds and loads the fake, once a process, and configures it.
func Open(c Configuration) (mtl.Libraries, error) {
	l, err := load()
	if err == nil {
		Configure(c)
	}
	return l, err
}

// Configure changes the fake and sets its counters to zero. No work may be under way.
func Configure(c Configuration) {
	r := configuration{seed: c.Seed, skipBarrier: int64(c.SkipBarrier) - 1, failCommit: int64(c.FailCommit) - 1,
		threads: uint32(c.Threads), delay: uint32(c.DelayMicros),
		workingSet: uint64(c.WorkingSetBytes), maxBuffer: uint64(c.MaxBufferBytes), residency: 1,
		dispatch: uint32(c.DispatchMicros), family: uint32(c.Family)}
	if r.workingSet == 0 {
		r.workingSet = 16 << 30
	}
	if r.maxBuffer == 0 {
		r.maxBuffer = 8 << 30
	}
	if r.family == 0 {
		r.family = 9
	}
	if c.NoResidencySets {
		r.residency = 0
	}
	if c.NoWork {
		r.idle = 1
	}
	configure(&r)
}

// Count reads the counters.
func Count() Counters {
	var c Counters
	counters(&c)
	return c
}

// paths keeps the answers of compile, which C reads after it has returned.
var (
	mu    sync.Mutex
	paths = map[string][]byte{}
)

// compile answers the fake's question for the shared object of a source: a C string, or null and a message.
func compile(source *byte, message *byte, messageBytes int) uintptr {
	path, err := cpurun.Object("source.metal", text(source))
	if err != nil {
		what := err.Error()
		var refused *cpurun.CompileError
		if errors.As(err, &refused) {
			what = refused.Text
		}
		to := unsafe.Slice(message, messageBytes)
		to[copy(to[:messageBytes-1], what)] = 0
		return 0
	}
	mu.Lock()
	defer mu.Unlock()
	if paths[path] == nil {
		paths[path] = append([]byte(path), 0)
	}
	return uintptr(unsafe.Pointer(&paths[path][0]))
}

func text(at *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(at, n))
}

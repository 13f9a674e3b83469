package machine

import (
	"context"
	"time"
)

// Sources is all that observing needs of a system. The real ones are System(); Recorded answers from a file.
// Every method may fail; a failure makes a fact unknown, never the observation fail.
type Sources interface {
	// Platform is the operating system and architecture of this program, as Go names them, and the usable cores.
	Platform() (goos, goarch string, cores int)
	// Run runs a program by its absolute path with a minimal environment, no standard input, and a bound on time and
	// output, and returns its standard output. A status other than 0 is a *RunError.
	Run(ctx context.Context, argv ...string) ([]byte, error)
	// ReadFile reads a small system file.
	ReadFile(path string) ([]byte, error)
	// Head reads the first n bytes of any file.
	Head(path string, n int) ([]byte, error)
	// Text and Int ask a sysctl. An unknown name is an error.
	Text(sysctl string) (string, error)
	Int(sysctl string) (int64, error)
	// Volume asks the volume that holds a path, or would: the nearest parent that exists.
	Volume(ctx context.Context, path string) (Volume, error)
	// Attribute reads an extended attribute; a missing one is fs.ErrNotExist.
	Attribute(path, name string) (string, error)
	// Look finds a program on PATH without running it, "" when there is none; links are followed.
	Look(name string) string
	// Env is a variable of the environment, "" when it is not set.
	Env(name string) string
	// Metal asks Metal in a child process.
	Metal(ctx context.Context) (MetalReport, error)
}

// Volume is a file system as statfs sees it. FreeBytes is what an ordinary user may still write.
type Volume struct {
	FileSystem string `json:"file_system"`
	Mount      string `json:"mount"`
	TotalBytes int64  `json:"total_bytes"`
	FreeBytes  int64  `json:"free_bytes"`
}

// RunError is a program that ended badly; Output is the start of what it said on standard error.
type RunError struct {
	Argv   []string
	Status int // -1: killed or not started
	Output string
	Err    error
}

func (e *RunError) Error() string {
	text := e.Argv[0] + ": " + e.Err.Error()
	if e.Output != "" {
		text += ": " + e.Output
	}
	return text
}

func (e *RunError) Unwrap() error { return e.Err }

const (
	runTimeout   = 15 * time.Second // system_profiler takes seconds on a busy Mac
	metalTimeout = 10 * time.Second
	maxOutput    = 4 << 20
)

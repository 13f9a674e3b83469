package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v3/disk"
)

// System is this machine.
func System() Sources { return system{} }

type system struct{}

func (system) Platform() (string, string, int) { return runtime.GOOS, runtime.GOARCH, runtime.NumCPU() }

// Run gives the program system folders as PATH and a neutral language, and forbids Go to fetch another Go.
func (system) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if len(argv) == 0 || !filepath.IsAbs(argv[0]) {
		panic("machine: a program is run by its absolute path")
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	return runBounded(ctx, argv, []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C", "LANG=C", "HOME=" +
		os.Getenv("HOME"),
		"GOTOOLCHAIN=local", "GOENV=off", "GOFLAGS="})
}

func runBounded(ctx context.Context, argv, env []string) ([]byte, error) {
	var out, errOut limitedBuffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &out, &errOut, env, "/"
	cmd.WaitDelay = runTimeout / 10 // a grandchild that keeps the pipe open does not hold us
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("did not answer in time: %w", ctx.Err())
	}
	if err != nil {
		status := -1
		if cmd.ProcessState != nil {
			status = cmd.ProcessState.ExitCode()
		}
		return nil, &RunError{Argv: argv, Status: status, Output: firstLine(errOut.kept.String()), Err: err}
	}
	return out.kept.Bytes(), nil
}

// limitedBuffer keeps the first maxOutput bytes and swallows the rest. The buffer is a field: embedded, its ReadFrom
// would go around the limit.
type limitedBuffer struct{ kept bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), max(0, maxOutput-b.kept.Len()))])
	return len(p), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line[:min(len(line), 200)]
}

func (system) ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxOutput))
}

func (system) Head(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, n)
	read, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:read], err
}

// Volume asks statfs through gopsutil, which on both systems gives what an ordinary user may write; macOS leaves out
// what it could purge.
func (system) Volume(ctx context.Context, path string) (Volume, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Volume{}, err
	}
	for {
		usage, err := disk.UsageWithContext(ctx, path)
		if err == nil {
			v := Volume{FileSystem: usage.Fstype, TotalBytes: int64(usage.Total), FreeBytes: int64(usage.Free)}
			if resolved, err := filepath.EvalSymlinks(path); err == nil {
				path = resolved
			}
			if mount, fileSystem := mountOf(path); mount != "" {
				v.Mount, v.FileSystem = mount, fileSystem
			}
			return v, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return Volume{}, err
		}
		path = filepath.Dir(path)
	}
}

// Look searches PATH like a shell. It runs nothing.
func (system) Look(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return ""
	}
	return path
}

func (system) Env(name string) string { return os.Getenv(name) }

// metalChild marks the child's environment, so that a program which does not know MetalVerb cannot start itself on and
// on.
const metalChild = "SLIPWAY_METAL_CHILD"

// Metal starts this program again with MetalVerb, where there can be Metal at all.
func (system) Metal(ctx context.Context) (MetalReport, error) {
	if runtime.GOOS != "darwin" {
		return AskMetal()
	}
	if os.Getenv(metalChild) != "" {
		return MetalReport{}, errors.New("a child that was started to ask Metal does not start another")
	}
	self, err := os.Executable()
	if err != nil {
		return MetalReport{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, metalTimeout)
	defer cancel()
	out, err := runBounded(ctx, []string{self, MetalVerb}, append(os.Environ(), metalChild+"=1"))
	if err != nil {
		return MetalReport{}, err
	}
	return parseMetal(out)
}

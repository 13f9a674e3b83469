package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/fault"
	"slipway/manifests"
)

// flags are those of every build: no paths of this machine, no change of go.mod, no stamp of the version control.
var flags = []string{"-trimpath", "-mod=readonly", "-buildvcs=false"}

// FailedError carries what the go command said.
type FailedError struct{ Output string }

func (e *FailedError) Error() string { return "go build failed: " + e.Output }

// Fault: see package fault.
func (e *FailedError) Fault() fault.Fault {
	return fault.Fault{Class: fault.BuildFailed, Step: fault.FixBuild}
}

// Output is a built program in a folder of its own, which the caller removes.
type Output struct {
	Dir    string
	Path   string
	SHA256 manifests.Digest
	Bytes  int64
}

// Server builds slipway-server for a target ("linux/amd64") into a temporary folder. A cancelled context ends the go
// command and its children. Errors: *FailedError.
func Server(ctx context.Context, source Source, tools Toolchain, target string) (Output, error) {
	sweep(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", temporaryPrefix, os.Getpid()))
	if err != nil {
		return Output{}, err
	}
	out := Output{Dir: dir, Path: filepath.Join(dir, "slipway-server")}
	goos, goarch, _ := strings.Cut(target, "/")
	args := append([]string{"build"}, flags...)
	cmd := exec.CommandContext(ctx, tools.Go, append(args, "-o", out.Path, serverPackage)...)
	cmd.Dir, cmd.Env = source.Dir, environment(goos, goarch)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		os.RemoveAll(dir)
		if ctx.Err() != nil {
			return Output{}, context.Cause(ctx)
		}
		return Output{}, &FailedError{tail(strings.TrimSpace(said.String()+"\n"+err.Error()), 2000)}
	}
	out.SHA256, out.Bytes, err = HashFile(out.Path)
	if err != nil {
		os.RemoveAll(dir)
		return Output{}, err
	}
	return out, nil
}

const temporaryPrefix = "slipway-build-"

// sweep removes the temporary folders of builds that were killed: ours by owner, named after a process that is gone.
func sweep(dir string) {
	left, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range left {
		name, ok := strings.CutPrefix(entry.Name(), temporaryPrefix)
		number, _, named := strings.Cut(name, "-")
		pid, err := strconv.Atoi(number)
		if !ok || !named || err != nil || !entry.IsDir() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
}

// environment gives the go command what decides nothing about the output (caches, proxies, the user's folders) and
// fixes what does. GOTOOLCHAIN=local: no other toolchain is fetched behind the plan's back.
func environment(goos, goarch string) []string {
	env := []string{"GOENV=off", "GOFLAGS=", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0", "GOOS=" + goos,
		"GOARCH=" + goarch}
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "GOCACHE", "GOMODCACHE", "GOPATH", "GOTMPDIR", "GOPROXY",
		"GOSUMDB", "GONOSUMDB",
		"GOPRIVATE", "GONOPROXY", "GOINSECURE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
		"no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "LANG", "LC_ALL", "GOMAXPROCS"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	// The go command does not read ALL_PROXY, which everything else here does.
	if all := cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy")); all != "" {
		for _, names := range [][]string{{"HTTPS_PROXY", "https_proxy"}, {"HTTP_PROXY", "http_proxy"}} {
			if os.Getenv(names[0]) == "" && os.Getenv(names[1]) == "" {
				env = append(env, names[0]+"="+all)
			}
		}
	}
	return env
}

func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("[%d bytes cut] %s", len(s)-limit, s[len(s)-limit:])
}

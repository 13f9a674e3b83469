package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slipway/fault"
)

// ErrNoGo says that no Go toolchain is available.
var ErrNoGo = fault.New(fault.Fault{Class: fault.Human, Step: fault.InstallGo}, "no Go toolchain was found")

// OldGoError: there is a toolchain, and it is too old.
type OldGoError struct{ Path, Have, Want string }

func (e *OldGoError) Error() string {
	return fmt.Sprintf("%s is %s, and the source needs go%s or newer", e.Path, e.Have, e.Want)
}

// Fault: see package fault.
func (e *OldGoError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Human, Step: fault.InstallGo}
}

// Toolchain is a Go installation.
type Toolchain struct {
	Go      string // absolute path of the go command, links resolved
	Version string // "go1.26.8"
}

// WellKnown is where Go lies when the PATH of an app or a fresh shell does not say so.
var WellKnown = []string{"/usr/local/go/bin", "/opt/homebrew/bin", "/usr/lib/go/bin", "/snap/bin"}

// FindGo looks along a PATH for a Go of at least the wanted version ("1.26.0"). It runs nothing where the installation
// names its version in a file; version managers' shims are ignored, because running one may install something.
func FindGo(ctx context.Context, path, want string) (Toolchain, error) {
	var old *OldGoError
	seen := map[string]bool{}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || strings.HasSuffix(filepath.Clean(dir), "/shims") {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "go"))
		if err != nil || seen[real] || filepath.Base(real) != "go" {
			continue
		}
		seen[real] = true
		if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		version, err := versionOf(ctx, real)
		if err != nil {
			continue
		}
		if atLeast(version, want) {
			return Toolchain{Go: real, Version: version}, nil
		}
		if old == nil {
			old = &OldGoError{Path: real, Have: version, Want: want}
		}
	}
	if old != nil {
		return Toolchain{}, old
	}
	return Toolchain{}, ErrNoGo
}

// versionOf reads GOROOT/VERSION, two folders up from bin/go; without it the command is asked.
func versionOf(ctx context.Context, goCommand string) (string, error) {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(goCommand)), "VERSION"))
	if first, _, _ := strings.Cut(string(data), "\n"); err == nil && strings.HasPrefix(first, "go1.") {
		return strings.TrimSpace(first), nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, goCommand, "env", "GOVERSION")
	cmd.Env, cmd.WaitDelay = environment("", ""), time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// atLeast compares "go1.26.8" with "1.26.0" by numbers; a pre-release ("go1.27rc1") counts as its release.
func atLeast(have, want string) bool {
	h, w := numbers(strings.TrimPrefix(have, "go")), numbers(want)
	for i := range w {
		if i >= len(h) {
			return w[i] == 0
		}
		if h[i] != w[i] {
			return h[i] > w[i]
		}
	}
	return true
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			break
		}
		all = append(all, n)
		if end < len(part) {
			break
		}
	}
	return all
}

//go:build !darwin

package launch

import "runtime"

// SystemBuild names the system; only macOS has builds that matter here.
func SystemBuild() string { return runtime.GOOS }

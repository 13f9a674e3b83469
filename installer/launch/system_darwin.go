package launch

import "golang.org/x/sys/unix"

// SystemBuild names the build of macOS that runs: its compiler of kernels belongs to it. Empty where it is unknown.
func SystemBuild() string {
	build, err := unix.Sysctl("kern.osversion")
	if err != nil {
		return ""
	}
	return build
}

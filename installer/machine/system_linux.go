package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Text reads /proc/sys, where Linux keeps what macOS calls sysctls.
func (system) Text(name string) (string, error) {
	data, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return "", fmt.Errorf("sysctl %s: %w", name, err)
	}
	return strings.TrimSpace(string(data)), nil
}

func (s system) Int(name string) (int64, error) {
	value, err := s.Text(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(value, 10, 64)
}

func (system) Attribute(path, name string) (string, error) {
	buffer := make([]byte, 1024)
	n, err := unix.Getxattr(path, name, buffer)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// mountOf finds the longest mount point above path in the mount table.
func mountOf(path string) string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	best := ""
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		mount := fields[4]
		under := mount == "/" || path == mount || strings.HasPrefix(path, mount+"/")
		if under && len(mount) > len(best) {
			best = mount
		}
	}
	return best
}

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

// mountOf finds the mount that holds path, the longest mount point above it, and its file system's own name (statfs
// knows only a number, the same for ext2, ext3 and ext4).
func mountOf(path string) (mount, fileSystem string) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", ""
	}
	return mountIn(string(data), path)
}

// mountIn reads mount tables: "36 35 98:0 /root /mount/point options optional... - type source options", a later line
// hiding an earlier one on the same place. Spaces in a mount point are written \040.
func mountIn(table, path string) (mount, fileSystem string) {
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 1 {
			continue
		}
		point := unescape.Replace(fields[4])
		under := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		if under && len(point) >= len(mount) {
			mount, fileSystem = point, kind[0]
		}
	}
	return mount, fileSystem
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

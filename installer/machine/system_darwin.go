package machine

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

func (system) Text(name string) (string, error) {
	value, err := unix.Sysctl(name)
	if err != nil {
		return "", fmt.Errorf("sysctl %s: %w", name, err)
	}
	return value, nil
}

// Int reads a sysctl of 4 or 8 bytes, little-endian as on every Mac.
func (system) Int(name string) (int64, error) {
	raw, err := unix.SysctlRaw(name)
	if err != nil {
		return 0, fmt.Errorf("sysctl %s: %w", name, err)
	}
	if len(raw) != 4 && len(raw) != 8 {
		return 0, fmt.Errorf("sysctl %s has %d bytes, 4 or 8 expected", name, len(raw))
	}
	var value uint64
	for i, b := range raw {
		value |= uint64(b) << (8 * i)
	}
	if len(raw) == 4 {
		return int64(int32(value)), nil
	}
	return int64(value), nil
}

func (system) Attribute(path, name string) (string, error) {
	buffer := make([]byte, 1024)
	n, err := unix.Getxattr(path, name, buffer)
	if errors.Is(err, unix.ENOATTR) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// mountOf is the mount that holds path and its file system's name.
func mountOf(path string) (mount, fileSystem string) {
	var stat unix.Statfs_t
	if unix.Statfs(path, &stat) != nil {
		return "", ""
	}
	return unix.ByteSliceToString(stat.Mntonname[:]), unix.ByteSliceToString(stat.Fstypename[:])
}

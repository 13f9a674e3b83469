package weights

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/safetensors"
)

// file is one mapped safetensors file. Its bytes stay valid until close; the file must not be cut while it is mapped.
type file struct {
	name    string // inside the checkpoint folder, slashes
	data    []byte
	unmap   func() error
	entries []Entry
}

// Tensor is one tensor of a checkpoint. Data points into the mapping and must not be written.
type Tensor struct {
	File  string
	Name  string // as in the file
	DType DType
	Shape []int64
	Data  []byte
}

func openFile(dir, name string) (*file, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, misfit(name, "", "a path that leaves the folder", "a file inside the checkpoint folder")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	err := regular(path, name)
	if os.IsNotExist(err) {
		return nil, misfit(name, "", "no such file", "a shard that the checkpoint names")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close() // the mapping outlives the descriptor
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if info.Size() < 8 {
		return nil, misfit(name, "", fmt.Sprintf("%d bytes", info.Size()), "a safetensors file (at least 8 bytes)")
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, misfit(name, "", fmt.Sprintf("%d bytes", info.Size()), "a file that this machine can map")
	}
	data, unmap, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", name, info.Size(), err)
	}
	entries, err := safetensors.ReadHeader(name, data, info.Size())
	if err != nil {
		unmap()
		return nil, err
	}
	return &file{name: name, data: data, unmap: unmap, entries: entries}, nil
}

// regular refuses what is no file, before it is opened: opening a pipe waits for a writer, and a device has no end.
func regular(path, name string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return misfit(name, "", kindOf(info.Mode()), "a regular file")
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// readFile reads a small file of the checkpoint.
func readFile(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	if err := regular(path, name); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// skipped names what a text model leaves alone: the vision tower under its several names.
func skipped(name string) bool {
	for _, part := range []string{"visual.", "vision_tower.", "vision_model.", "multi_modal_projector."} {
		if strings.HasPrefix(name, part) || strings.Contains(name, "."+part) {
			return true
		}
	}
	return false
}

//go:build !unix

package weights

import (
	"io"
	"os"
)

const canMap = false

// mapFile reads the file where the system has no mmap of this form.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

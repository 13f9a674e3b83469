//go:build !unix

package disk

import (
	"errors"
	"os"
)

// lockFile refuses: without a lock two servers could share the folder.
func lockFile(string) (*os.File, error) {
	return nil, errors.New("this system has no file locks, so there is no disk cache; run with --no-cache-disk")
}

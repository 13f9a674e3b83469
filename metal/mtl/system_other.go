//go:build unix && !darwin

package mtl

import (
	"fmt"
	"runtime"
)

// System is macOS's Metal, which is not here.
func System() (Libraries, error) {
	return Libraries{}, fmt.Errorf("Metal is part of macOS; this is %s", runtime.GOOS)
}

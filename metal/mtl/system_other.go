//go:build unix && !darwin

package mtl

import (
	"fmt"
	"runtime"
)

// System is macOS's Metal, which is not here.
func System() (Libraries, error) {
	return Libraries{}, fmt.Errorf("this is %s: Metal is part of macOS", runtime.GOOS)
}

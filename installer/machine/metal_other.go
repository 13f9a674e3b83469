//go:build !darwin

package machine

import "errors"

// AskMetal asks the default Metal device, in this process. There is none here.
func AskMetal() (MetalReport, error) {
	return MetalReport{}, errors.New("Metal exists only on macOS")
}

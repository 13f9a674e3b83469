//go:build !unix

package kernels

import "testing"

// guarded returns n zero floats. Reads past their end go unseen on this system.
func guarded(t *testing.T, n int) []float32 {
	t.Helper()
	return make([]float32, n)
}

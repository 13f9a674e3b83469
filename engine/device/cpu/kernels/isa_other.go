//go:build !amd64 && !arm64

package kernels

func vectorISAs() []ISA { return nil }

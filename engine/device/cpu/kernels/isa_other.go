//go:build !amd64

package kernels

func vectorISAs() []ISA { return nil }

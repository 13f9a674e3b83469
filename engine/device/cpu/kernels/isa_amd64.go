package kernels

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -dir ..

func vectorISAs() []ISA {
	x := &cpu.X86
	if !(x.HasAVX2 && x.HasFMA && x.HasF16C) {
		return nil
	}
	if !(x.HasAVX512F && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512BW) {
		return []ISA{AVX2}
	}
	return []ISA{AVX2, AVX512}
}

package kernels

func vectorISAs() []ISA { return nil }

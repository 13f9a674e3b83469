package kernels

// NEON is part of every arm64 processor.
func vectorISAs() []ISA { return []ISA{NEON} }

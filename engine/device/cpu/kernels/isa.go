package kernels

import (
	"fmt"
	"os"
	"strings"
)

// ISA names an instruction set that the kernels are written for.
type ISA int

const (
	Plain  ISA = iota // Go, on every architecture
	AVX2              // amd64 with AVX2, FMA and F16C
	AVX512            // amd64 with AVX-512 F, VL, DQ, BW
	NEON              // arm64: matrix products and attention; the other loops are plain
)

// String returns the name that ParseISA reads.
func (i ISA) String() string {
	switch i {
	case Plain:
		return "plain"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	case NEON:
		return "neon"
	}
	return fmt.Sprintf("ISA(%d)", int(i))
}

// ParseISA reads "plain", "avx2", "avx512" or "neon".
func ParseISA(name string) (ISA, error) {
	for _, i := range []ISA{Plain, AVX2, AVX512, NEON} {
		if strings.EqualFold(name, i.String()) {
			return i, nil
		}
	}
	return Plain, fmt.Errorf("kernels: instruction set %q is not known: plain, avx2, avx512 or neon", name)
}

// EnvISA is the environment variable that picks the instruction set at start, by a name that ParseISA reads. A set that
// this processor lacks, or an unknown name, is not used: EnvError is why, and a program should refuse to go on.
const EnvISA = "SLIPWAY_CPU_ISA"

var (
	active   = Plain
	envError error
)

func init() {
	active = Available()[len(Available())-1]
	envError = choose(os.Getenv(EnvISA))
}

// choose uses the named set; an empty name leaves the choice as it is.
func choose(name string) error {
	if name == "" {
		return nil
	}
	i, err := ParseISA(name)
	if err != nil {
		return err
	}
	return Use(i)
}

// EnvError returns why the setting in EnvISA was not used, or nil.
func EnvError() error { return envError }

// Active returns the instruction set in use.
func Active() ISA { return active }

// Available lists the sets that this processor has, slowest first. It always begins with Plain.
func Available() []ISA { return append([]ISA{Plain}, vectorISAs()...) }

// Use switches all kernels to i. It is for tests and for the start of a program: no kernel may run meanwhile.
func Use(i ISA) error {
	for _, a := range Available() {
		if a == i {
			active = i
			return nil
		}
	}
	return fmt.Errorf("kernels: this processor has no %v", i)
}

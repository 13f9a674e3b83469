package profiles

// KVFormat is how keys and values of the full-attention layers are kept. The names are those of the server's probe.
type KVFormat string

const (
	F32 KVFormat = "f32" // the CPU reference
	F16 KVFormat = "f16" // the exact format on Metal
	Q8  KVFormat = "q8"  // 8 bit, groups of 64 with a 16-bit scale and bias
	Q4  KVFormat = "q4"  // 4 bit, groups of 64 with a 16-bit scale and bias
)

// kvFormats goes from the widest to the narrowest: a server without the wanted format may use a wider one.
var kvFormats = []KVFormat{F32, F16, Q8, Q4}

// rank is the place in kvFormats, -1 for an unknown name.
func (f KVFormat) rank() int {
	for i, known := range kvFormats {
		if f == known {
			return i
		}
	}
	return -1
}

// Known says whether the name is one of ours.
func (f KVFormat) Known() bool { return f.rank() >= 0 }

// Approximate says whether the format changes results: everything below 16 bit does.
func (f KVFormat) Approximate() bool { return f.rank() > F16.rank() }

// String is the name in sentences.
func (f KVFormat) String() string { return string(f) }

// rowBytes is the size of one head's row of dim elements. A quantised row holds ceil(dim/64) groups.
func (f KVFormat) rowBytes(dim int) int64 {
	groups := int64(dim+63) / 64
	switch f {
	case F32:
		return int64(dim) * 4
	case F16:
		return int64(dim) * 2
	case Q8:
		return groups * (64 + 4)
	case Q4:
		return groups * (32 + 4)
	}
	panic("profiles: unknown KV format " + string(f))
}

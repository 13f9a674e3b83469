package sample

// Generator gives the random numbers of one reply: SplitMix64 (Steele, Lea, Flood 2014; constants of Vigna's
// public-domain version), the same on every machine for one seed.
type Generator struct{ state uint64 }

// NewGenerator begins the sequence of a seed. Every seed is good, 0 included.
func NewGenerator(seed uint64) *Generator { return &Generator{state: seed} }

// Uint64 gives the next 64 bits.
func (g *Generator) Uint64() uint64 {
	g.state += 0x9e3779b97f4a7c15
	z := g.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float64 gives the next number in [0, 1), a multiple of 2^-53.
func (g *Generator) Float64() float64 { return float64(g.Uint64()>>11) / (1 << 53) }

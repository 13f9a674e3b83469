package sample

// Mask says which tokens may come next: bit id of a little-endian row of words, 1 where allowed. A nil mask allows all;
// ids beyond the last word are forbidden. It is the seam for structured output.
type Mask []uint64

// NewMask forbids everything, with room for vocabTokens ids.
func NewMask(vocabTokens int) Mask { return make(Mask, (vocabTokens+63)/64) }

// Allow permits one id.
func (m Mask) Allow(id int32) { m[id/64] |= 1 << (id % 64) }

// Allows reports whether id may come next.
func (m Mask) Allows(id int32) bool {
	if m == nil {
		return true
	}
	word := int(id / 64)
	return word < len(m) && m[word]>>(id%64)&1 == 1
}

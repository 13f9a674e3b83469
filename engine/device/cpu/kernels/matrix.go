package kernels

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// OutUnit is the number of outputs that are packed together. Ranges of outputs whose borders are multiples of it (or
// the last output) are the fast ones; Split gives such ranges.
const OutUnit = 16

// blockK is how many k are expanded to float32 at a time: 128 k of 4 panels are 32 KiB, which leaves room in a 48 KiB
// first-level cache.
const blockK = 128

// A Matrix is a weight matrix W [Out][In], packed for Mul. It is immutable and may be used by many goroutines.
//
// Packed form: panels of 16 outputs, the last filled up with zeros.
//
//	dense F32        In × [16] float32
//	dense BF16, F16  In × [16] uint16
//
// affine per group: 16 scales, 16 biases (BF16 kept, F16 widened to F32), then Group·Bits/32 × [16] uint32, the words
//
//	of the MLX bit stream of each output side by side
type Matrix struct {
	out, in int
	dtype   DType // of dense numbers, or of scales and biases
	bits    int   // 0 when dense
	group   int
	panel   int // uint32 words of one panel
	words   []uint32
}

// Affine describes a matrix in MLX's affine form; value = scale·q + bias.
type Affine struct {
	Out, In   int
	Bits      int    // 2, 3, 4, 5, 6 or 8
	Group     int    // 32, 64 or 128; In is a multiple of it
	Codes     []byte // Out rows of In·Bits/8 bytes: little-endian bit streams, first element in the lowest bits
	Scales    []byte // Out rows of In/Group numbers of ScaleType, little-endian
	Biases    []byte // as Scales
	ScaleType DType
}

// PackAffine copies a quantised matrix into packed form. An error says which fact of a does not fit.
func PackAffine(a Affine) (*Matrix, error) {
	switch a.Bits {
	case 2, 3, 4, 5, 6, 8:
	default:
		return nil, fmt.Errorf("kernels: affine matrix with %d bits: 2, 3, 4, 5, 6 and 8 are known", a.Bits)
	}
	switch a.Group {
	case 32, 64, 128:
	default:
		return nil, fmt.Errorf("kernels: affine matrix with groups of %d: 32, 64 and 128 are known", a.Group)
	}
	if a.Out <= 0 || a.In <= 0 || a.In%a.Group != 0 {
		return nil, fmt.Errorf("kernels: affine matrix [%d][%d]: both must be positive, the second a multiple of "+
			"the group %d", a.Out, a.In, a.Group)
	}
	groups := a.In / a.Group
	rowBytes := a.In * a.Bits / 8
	if want := a.Out * rowBytes; len(a.Codes) != want {
		return nil, fmt.Errorf("kernels: affine matrix [%d][%d] of %d bits has %d bytes of codes, wants %d", a.Out,
			a.In, a.Bits, len(a.Codes), want)
	}
	for _, s := range []struct {
		name string
		data []byte
	}{{"scales", a.Scales}, {"biases", a.Biases}} {
		if want := a.Out * groups * a.ScaleType.Size(); len(s.data) != want {
			return nil, fmt.Errorf("kernels: affine matrix [%d][%d] has %d bytes of %v %s, wants %d", a.Out, a.In,
				len(s.data), a.ScaleType, s.name, want)
		}
	}
	m := &Matrix{out: a.Out, in: a.In, dtype: a.ScaleType, bits: a.Bits, group: a.Group}
	if m.dtype == F16 {
		m.dtype = F32
	}
	scaleWords, codeWords := m.scaleWords(), m.codeWords()
	m.panel = groups * (2*scaleWords + codeWords)
	m.words = alignedWords(m.panels() * m.panel)
	for o := 0; o < a.Out; o++ {
		lane := o % OutUnit
		codes := a.Codes[o*rowBytes:]
		for g := 0; g < groups; g++ {
			dst := m.words[o/OutUnit*m.panel+g*(2*scaleWords+codeWords):]
			for i, data := range [][]byte{a.Scales, a.Biases} {
				m.putScale(dst[i*scaleWords:], lane, data, a.ScaleType, o*groups+g)
			}
			dst = dst[2*scaleWords:]
			for w := 0; w < codeWords/OutUnit; w++ {
				dst[w*OutUnit+lane] = binary.LittleEndian.Uint32(codes[(g*codeWords/OutUnit+w)*4:])
			}
		}
	}
	return m, nil
}

// scaleWords returns the words of 16 scales.
func (m *Matrix) scaleWords() int { return OutUnit * m.dtype.Size() / 4 }

// codeWords returns the words of the codes of 16 outputs and one group.
func (m *Matrix) codeWords() int { return OutUnit * m.group * m.bits / 32 }

func (m *Matrix) putScale(dst []uint32, lane int, data []byte, t DType, i int) {
	if m.dtype == F32 {
		dst[lane] = float32bits(load(data, t, i))
		return
	}
	dst[lane/2] |= uint32(binary.LittleEndian.Uint16(data[2*i:])) << (lane % 2 * 16)
}

// PackDense copies a matrix of out rows of in little-endian numbers of type t into packed form.
func PackDense(out, in int, data []byte, t DType) (*Matrix, error) {
	if out <= 0 || in <= 0 {
		return nil, fmt.Errorf("kernels: matrix [%d][%d]: both must be positive", out, in)
	}
	if want := out * in * t.Size(); len(data) != want {
		return nil, fmt.Errorf("kernels: %v matrix [%d][%d] has %d bytes, wants %d", t, out, in, len(data), want)
	}
	m := &Matrix{out: out, in: in, dtype: t, panel: in * OutUnit * t.Size() / 4}
	m.words = alignedWords(m.panels() * m.panel)
	for o := 0; o < out; o++ {
		dst, lane := m.words[o/OutUnit*m.panel:], o%OutUnit
		if t == F32 {
			for k := 0; k < in; k++ {
				dst[k*OutUnit+lane] = binary.LittleEndian.Uint32(data[(o*in+k)*4:])
			}
			continue
		}
		for k := 0; k < in; k++ {
			dst[(k*OutUnit+lane)/2] |= uint32(binary.LittleEndian.Uint16(data[(o*in+k)*2:])) << (lane % 2 * 16)
		}
	}
	return m, nil
}

// Out returns the number of outputs.
func (m *Matrix) Out() int { return m.out }

// In returns the number of inputs.
func (m *Matrix) In() int { return m.in }

// Bytes returns the memory that the packed matrix holds.
func (m *Matrix) Bytes() int { return 4 * len(m.words) }

// Split returns the range of outputs of part i of parts, with fast borders. Parts differ by at most OutUnit outputs;
// with fewer panels than parts some ranges are empty.
func (m *Matrix) Split(parts, i int) (lo, hi int) {
	p := m.panels()
	return min(p*i/parts*OutUnit, m.out), min(p*(i+1)/parts*OutUnit, m.out)
}

func (m *Matrix) panels() int { return (m.out + OutUnit - 1) / OutUnit }

// Row writes W[o][0:In], dequantised as scale·q + bias with one rounding, to dst[0:In]. It is the embedding look-up,
// and exactly the weights that Mul multiplies with.
func (m *Matrix) Row(dst []float32, o int) {
	if o < 0 || o >= m.out {
		panic(fmt.Sprintf("kernels: row %d of a matrix with %d", o, m.out))
	}
	dst = dst[:m.in]
	panel, lane := m.words[o/OutUnit*m.panel:][:m.panel], o%OutUnit
	if m.bits == 0 {
		for k := range dst {
			dst[k] = m.number(panel, k*OutUnit+lane)
		}
		return
	}
	scaleWords, codeWords := m.scaleWords(), m.codeWords()
	mask := uint32(1)<<m.bits - 1
	for g := 0; g < m.in/m.group; g++ {
		src := panel[g*(2*scaleWords+codeWords):]
		scale, bias := m.number(src, lane), m.number(src[scaleWords:], lane)
		codes := src[2*scaleWords:]
		var bits uint64
		have := 0
		for k := range m.group {
			if have < m.bits {
				bits |= uint64(codes[lane]) << have
				codes = codes[min(OutUnit, len(codes)):]
				have += 32
			}
			dst[g*m.group+k] = fma32(scale, float32(uint32(bits)&mask), bias)
			bits >>= m.bits
			have -= m.bits
		}
	}
}

// number i of type m.dtype in words.
func (m *Matrix) number(words []uint32, i int) float32 {
	switch m.dtype {
	case F32:
		return float32frombits(words[i])
	case BF16:
		return BF16ToF32(uint16(words[i/2] >> (i % 2 * 16)))
	default:
		return F16ToF32(uint16(words[i/2] >> (i % 2 * 16)))
	}
}

// alignedWords returns n zero words that begin at a multiple of 64 bytes.
func alignedWords(n int) []uint32 {
	w := make([]uint32, n+15)
	skip := int(-uintptr(unsafe.Pointer(&w[0]))%64) / 4
	return w[skip : skip+n : skip+n]
}

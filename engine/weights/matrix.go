package weights

import "fmt"

// Matrix is a linear layer or an embedding table, [Out, In], row-major, as it is in the file.
//
// Quantised (Bits > 0): value[o][i] = scale·q + bias with one scale and bias per Group inputs. Data holds a
// little-endian bit stream per row, element i in bits [i·Bits, (i+1)·Bits), In·Bits/8 bytes a row; Scales and Biases
// are [Out, In/Group] of ScaleDType. A scale may be negative. Source: mlx affine quantisation. Float (Bits == 0): Data
// is [Out, In] of DType. Slices point into the mapping, or into memory of their own where rows had to be gathered; they
// have no alignment.
type Matrix struct {
	Name           string
	Out, In        int
	DType          DType // of Data when Bits == 0
	Bits, Group    int
	Data           []byte
	Scales, Biases []byte
	ScaleDType     DType
}

// RowBytes is the length of one row of Data.
func (m Matrix) RowBytes() int {
	if m.Bits > 0 {
		return m.In * m.Bits / 8
	}
	return m.In * int(m.DType.Bytes())
}

// ScaleRowBytes is the length of one row of Scales, and of Biases; 0 for a float matrix.
func (m Matrix) ScaleRowBytes() int {
	if m.Bits == 0 {
		return 0
	}
	return m.In / m.Group * int(m.ScaleDType.Bytes())
}

// Bytes is what the matrix takes in its file form.
func (m Matrix) Bytes() int64 { return int64(len(m.Data) + len(m.Scales) + len(m.Biases)) }

// Rows gathers rows into a new matrix. Exact for quantised matrices too, because groups run along a row.
func (m Matrix) Rows(name string, rows []int) Matrix {
	g := m
	g.Name, g.Out = name, len(rows)
	g.Data = gather(m.Data, m.RowBytes(), rows)
	if m.Bits > 0 {
		g.Scales = gather(m.Scales, m.ScaleRowBytes(), rows)
		g.Biases = gather(m.Biases, m.ScaleRowBytes(), rows)
	}
	return g
}

func gather(data []byte, rowBytes int, rows []int) []byte {
	out := make([]byte, 0, rowBytes*len(rows))
	for _, r := range rows {
		out = append(out, data[r*rowBytes:(r+1)*rowBytes]...)
	}
	return out
}

// Row dequantises row r into dst [In]: the plain reading that every faster one is checked against.
func (m Matrix) Row(dst []float32, r int) {
	if m.Bits == 0 {
		Floats(dst[:0], m.DType, m.Data[r*m.RowBytes():(r+1)*m.RowBytes()])
		return
	}
	row := m.Data[r*m.RowBytes() : (r+1)*m.RowBytes()]
	groups := m.In / m.Group
	scales := Floats(make([]float32, 0, groups), m.ScaleDType, m.Scales[r*m.ScaleRowBytes():(r+1)*m.ScaleRowBytes()])
	biases := Floats(make([]float32, 0, groups), m.ScaleDType, m.Biases[r*m.ScaleRowBytes():(r+1)*m.ScaleRowBytes()])
	for i := range m.In {
		dst[i] = scales[i/m.Group]*float32(Code(row, m.Bits, i)) + biases[i/m.Group]
	}
}

// Code reads element i of a row's bit stream.
func Code(row []byte, bits, i int) uint32 {
	at := i * bits
	v := uint32(row[at/8])
	if at/8+1 < len(row) {
		v |= uint32(row[at/8+1]) << 8
	}
	return v >> (at % 8) & (1<<bits - 1)
}

// matrix assembles the module at a full path from its tensors and checks shape, types and the stated quantisation.
func (c *Checkpoint) matrix(path string, out, in int, stated bool) (Matrix, error) {
	w, err := c.tensor(path + ".weight")
	if err != nil {
		return Matrix{}, err
	}
	m := Matrix{Name: path, Out: out, In: in, DType: w.DType, Data: w.Data}
	_, hasScales := c.tensors[path+".scales"]
	if !hasScales {
		if o, ok := c.quant.modules[path]; ok && !o.off && stated {
			return Matrix{}, misfit(w.File, path+".scales", "no such tensor",
				fmt.Sprintf("scales, because config.json quantises it with %d bits", o.bits))
		}
		if !w.DType.IsFloat() {
			return Matrix{}, misfit(w.File, w.Name, "dtype "+string(w.DType)+" without scales",
				"F32, F16, BF16, or U32 with scales and biases")
		}
		return m, wantShape(w, out, in)
	}
	if w.DType != U32 {
		return Matrix{}, misfit(w.File, w.Name, "dtype "+string(w.DType), "U32, because it has scales")
	}
	scales, err := c.tensor(path + ".scales")
	if err != nil {
		return Matrix{}, err
	}
	biases, err := c.tensor(path + ".biases")
	if err != nil {
		return Matrix{}, err
	}
	if !scales.DType.IsFloat() {
		return Matrix{}, misfit(scales.File, scales.Name, "dtype "+string(scales.DType), "F32, F16 or BF16 (affine)")
	}
	if biases.DType != scales.DType {
		return Matrix{}, misfit(biases.File, biases.Name, "dtype "+string(biases.DType), string(scales.DType)+
			" as its scales")
	}
	if len(w.Shape) != 2 || w.Shape[0] != int64(out) || w.Shape[1] <= 0 || w.Shape[1]*32%int64(in) != 0 ||
		!validBits(int(w.Shape[1]*32/int64(in))) {
		return Matrix{}, misfit(w.File, w.Name, fmt.Sprintf("shape %v", w.Shape),
			fmt.Sprintf("[%d, %d·bits/32] with bits 2, 3, 4, 5, 6 or 8", out, in))
	}
	m.Bits = int(w.Shape[1] * 32 / int64(in))
	if len(scales.Shape) != 2 || scales.Shape[0] != int64(out) || scales.Shape[1] <= 0 ||
		int64(in)%scales.Shape[1] != 0 || !validGroup(int(int64(in)/scales.Shape[1])) {
		return Matrix{}, misfit(scales.File, scales.Name, fmt.Sprintf("shape %v", scales.Shape),
			fmt.Sprintf("[%d, %d/group] with groups of 32, 64 or 128", out, in))
	}
	m.Group = int(int64(in) / scales.Shape[1])
	if err := wantShape(biases, out, in/m.Group); err != nil {
		return Matrix{}, err
	}
	if stated && c.quant.stated {
		if err := c.checkStated(w, path, m); err != nil {
			return Matrix{}, err
		}
	}
	m.Scales, m.Biases, m.ScaleDType = scales.Data, biases.Data, scales.DType
	return m, nil
}

// checkStated refuses a config that says other numbers than the tensors have: one of the two is damaged.
func (c *Checkpoint) checkStated(w Tensor, path string, m Matrix) error {
	want := override{bits: c.quant.bits, group: c.quant.group}
	if o, ok := c.quant.modules[path]; ok {
		want = o
	}
	if want.off {
		return misfit(w.File, w.Name, "a quantised tensor", "float weights: config.json says false for this module")
	}
	if want.bits != m.Bits || want.group != m.Group {
		return misfit(w.File, w.Name, fmt.Sprintf("%d bits in groups of %d", m.Bits, m.Group),
			fmt.Sprintf("%d bits in groups of %d as config.json says", want.bits, want.group))
	}
	return nil
}

func wantShape(t Tensor, dims ...int) error {
	same := len(t.Shape) == len(dims)
	for i := 0; same && i < len(dims); i++ {
		same = t.Shape[i] == int64(dims[i])
	}
	if !same {
		return misfit(t.File, t.Name, fmt.Sprintf("shape %v", t.Shape), fmt.Sprintf("%v", dims))
	}
	return nil
}

//go:build unix

package metal

import (
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
	"slipway/metal/mtl"
)

const (
	// gemvRows is the most rows that read the weights once in linear_gemv.
	gemvRows = 8
	// splitColumns is the number of columns from which the two simdgroups of a threadgroup share the outputs, half of
	// the columns each.
	splitColumns = 1024
	// matrixRows is the least number of rows that linear_rows multiplies by matrices, where it has the form. Two rows
	// keep the bits of one; by matrices they would cost as much as eight.
	matrixRows = 3
	// gemvProducts is the most products of one dispatch of either.
	gemvProducts = 4
	// gemmTile is the rows, and the outputs, of a tile of linear_gemm. Pieces of a product are whole tiles, so that its
	// bits are the same.
	gemmTile = 32
)

// encodeLinear runs the products side by side: they share x and write to different buffers. Products of one form that
// linear_gemv takes share a dispatch. Work that is longer than a command buffer may be is split.
func (p *pass) encodeLinear(e *encoder, o *device.Linear) error {
	var done [64]bool
	if len(o.Products) > len(done) {
		panic("metal: more than 64 products of one input")
	}
	for i := range o.Products {
		if done[i] {
			continue
		}
		m := o.Products[i].W.(*matrix)
		v := p.linearVariant(m, o.Rows)
		if v.library != "linear_gemv" && v.library != "linear_rows" {
			if err := p.encodeProduct(e, o, &o.Products[i], v); err != nil {
				return err
			}
			continue
		}
		if outs := m.fitting(o.Rows, e.budget()); outs < m.out && o.Rows == 1 {
			if err := p.encodeRow(e, o, v, &o.Products[i], outs); err != nil {
				return err
			}
			continue
		}
		var together [gemvProducts]*device.Product
		n, left := 0, e.budget()
		for j := i; j < len(o.Products) && n < gemvProducts; j++ {
			other := o.Products[j].W.(*matrix)
			if cost := other.cost(o.Rows, other.out); !done[j] && p.linearVariant(other, o.Rows) == v &&
				(n == 0 || cost <= left) {
				together[n], done[j] = &o.Products[j], true
				left -= cost
				n++
			}
		}
		if err := p.encodeTogether(e, o, v, 0, together[:n]); err != nil {
			return err
		}
	}
	return nil
}

// encodeProduct runs one product with linear_gemm or linear_plain, split by rows so that each piece fits into a command
// buffer, and where a tile of rows does not fit, by outputs too.
func (p *pass) encodeProduct(e *encoder, o *device.Linear, q *device.Product, v variant) error {
	m, rows := q.W.(*matrix), o.Rows
	for rows > gemmTile && m.cost(rows, m.out) > e.budget() {
		rows = divide(divide(rows, 2), gemmTile) * gemmTile
	}
	outs := m.fitting(rows, e.budget())
	for row := 0; row < o.Rows; row += rows {
		for from := 0; from < m.out; from += outs {
			if err := p.encodePiece(e, o, q, v, row, min(rows, o.Rows-row), from, min(outs, m.out-from)); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodePiece runs rows [row, row+rows) by outputs [from, from+outs) of a product.
func (p *pass) encodePiece(e *encoder, o *device.Linear, q *device.Product, v variant, row, rows, from,
	outs int) error {
	whole, dst := q.W.(*matrix), q.Dst.(*buffer)
	m := whole.rows(from, outs)
	params := kernels.LinearParams{Rows: u32(rows), Out: u32(outs), In: u32(m.in), Stride: u32(whole.out)}
	if q.Add {
		params.Add = 1
	}
	grid, group := groups(outs, rows, plane), plane
	if v.library == "linear_gemm" {
		grid, group = [3]int{divide(outs, gemmTile), divide(rows, gemmTile), 1}, [3]int{128, 1, 1}
	}
	to := dst.from(row, 1, write)
	to.offset += 4 * from
	uses := [6]use{to, own(o.X).from(row, 2, read), m.data.use(3), p.status(6), m.scales.use(4), m.biases.use(5)}
	n := len(uses)
	if m.format != device.FormatAffine {
		n -= 2
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, whole.cost(rows, outs), 0,
		uses[:n]...)
}

// encodeRow runs a product of one row with linear_gemv, outs outputs at a time. With more rows it would have to read
// the weights once a row, or know a stride. A matrix of 1 GB is too long only where memory is read at 5 GB/s, a tenth
// of the slowest M-series chip.
func (p *pass) encodeRow(e *encoder, o *device.Linear, v variant, q *device.Product, outs int) error {
	m := q.W.(*matrix)
	for from := 0; from < m.out; from += outs {
		piece := *q
		piece.W = m.rows(from, min(outs, m.out-from))
		if err := p.encodeTogether(e, o, v, from, []*device.Product{&piece}); err != nil {
			return err
		}
	}
	return nil
}

// cost is the estimated cost, in bytes, of a product of rows and outs of the outputs.
func (m *matrix) cost(rows, outs int) float64 {
	bytes := float64(m.bytes)*float64(outs)/float64(m.out) + 4*float64(rows)*float64(m.in+outs)
	return max(bytes, 2*float64(rows)*float64(m.in)*float64(outs)/flopsPerByte)
}

// fitting is how many outputs fit into a budget: whole tiles, at least one.
func (m *matrix) fitting(rows int, budget float64) int {
	outs := m.out
	for outs > gemmTile && m.cost(rows, outs) > budget {
		outs = divide(divide(outs, 2), gemmTile) * gemmTile
	}
	return outs
}

// rows is the part of the matrix with outputs [from, from+n). A multiple of 32 keeps addresses aligned.
func (m *matrix) rows(from, n int) *matrix {
	if n == m.out {
		return m
	}
	part := *m
	part.out = n
	part.bytes = m.bytes * int64(n) / int64(m.out)
	bits := m.bits
	if m.format != device.FormatAffine {
		bits = 8 * formatBytes[m.format]
	}
	part.data.offset += from * m.in * bits / 8
	if m.format == device.FormatAffine {
		scales := from * (m.in / m.group) * formatBytes[m.scaleFormat]
		part.scales.offset += scales
		part.biases.offset += scales
	}
	return &part
}

// encodeTogether runs up to four products with linear_gemv, one after another along the grid; or gate and up, where v
// is gated. The outputs begin at a column.
func (p *pass) encodeTogether(e *encoder, o *device.Linear, v variant, column int, products []*device.Product) error {
	const never = 1 << 31 // a tile beyond every grid
	params := kernels.LinearGemvParams{In: u32(own(o.X).cols), Tile1: never, Tile2: never, Tile3: never}
	outs := [gemvProducts]*uint32{&params.Out0, &params.Out1, &params.Out2, &params.Out3}
	begins := [gemvProducts]*uint32{nil, &params.Tile1, &params.Tile2, &params.Tile3}
	var uses [2 + 4*gemvProducts]use
	n, tiles := 1, 0
	var cost float64
	uses[0] = own(o.X).use(5, read)
	threads, outputs := 64, 8 // of a threadgroup
	switch byMatrices := v.library == "linear_rows"; {
	case byMatrices:
		operands, totals, err := p.encodeRowsHalf(e, o, v)
		if err != nil {
			return err
		}
		uses[0], uses[1], n = operands.use(5), totals.use(18), 2
		if threads, outputs = 256, 16; v.constants[3] != 0 {
			outputs = 8
		}
	case v.constants[4] != 0 || v.constants[5] != 0:
		outputs = 4
	}
	together := v.gated()
	for q := range gemvProducts {
		there := q < len(products)
		of := products[0]
		if there {
			of = products[q]
		}
		m := of.W.(*matrix)
		*outs[q] = u32(m.out)
		uses[n], uses[n+1] = of.Dst.(*buffer).use(1+q, write), m.data.use(6+q)
		uses[n].offset += 4 * column
		n += 2
		if m.format == device.FormatAffine {
			uses[n], uses[n+1] = m.scales.use(10+q), m.biases.use(14+q)
			n += 2
		}
		if !there {
			continue
		}
		if of.Add {
			params.Add |= 1 << q
		}
		cost += m.cost(o.Rows, m.out)
		own := divide(m.out, outputs) // of a matrix
		switch {
		case together:
			tiles = own // gate and up in the same ones
		case q > 0:
			*begins[q] = u32(tiles)
			tiles += own
		default:
			tiles = own
		}
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{tiles, 1, 1}, [3]int{threads, 1, 1},
		cost, 0,
		uses[:n]...)
}

// gated reports whether the variant runs gate, up and SwiGLU.
func (v variant) gated() bool {
	return v.library == "linear_gemv" && v.constants[4] != 0 || v.library == "linear_rows" && v.constants[3] != 0
}

// encodeRowsHalf makes the operands of linear_rows and the sums of their columns, which the next dispatch reads.
func (p *pass) encodeRowsHalf(e *encoder, o *device.Linear, v variant) (operands, totals places, err error) {
	in := own(o.X).cols
	const perColumn = 8 / 2 // words of 8 rows of operands
	if err := p.growPartial("the operands of several rows", perColumn*in+in/64*16); err != nil {
		return operands, totals, err
	}
	operands, totals = places{p.meta.partial, 0}, places{p.meta.partial, 4 * perColumn * in}
	params := kernels.LinearRowsParams{In: u32(in)}
	v.name, v.constants[3] = "rows_half", 0
	err = e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{in / 64, 1, 1}, [3]int{256, 1, 1},
		float64((4*o.Rows+2*8)*in), 0, use{operands.b, operands.offset, 1, write},
		use{totals.b, totals.offset, 2, write},
		own(o.X).use(3, read), p.status(4))
	e.phase()
	return operands, totals, err
}

// places is a part of a pass's partial sums.
type places struct {
	b      *mtl.Buffer
	offset int
}

func (q places) use(index int) use { return use{q.b, q.offset, index, read} }

// gated returns the variant that runs gate, up and SwiGLU in one dispatch, when the two operations are exactly that.
func (p *pass) gated(linear *device.Linear, after *device.SwiGLU) (v variant, ok bool) {
	if len(linear.Products) != 2 || linear.Rows != after.Rows {
		return v, false
	}
	gate, up := &linear.Products[0], &linear.Products[1]
	if gate.Add || up.Add || gate.Dst != after.Gate || up.Dst != after.Up || after.Dst != after.Gate ||
		after.Gate == after.Up {
		return v, false
	}
	v = p.linearVariant(gate.W.(*matrix), linear.Rows)
	other := p.linearVariant(up.W.(*matrix), linear.Rows)
	if v.library != "linear_gemv" && v.library != "linear_rows" || other != v {
		return v, false
	}
	if v.library == "linear_rows" {
		v.constants[3] = 1
	} else {
		v.constants[4], v.constants[5] = 1, 0
	}
	return p.dev.either(v, variant{}), p.dev.fast(v.library)
}

// encodeGated runs gate, up and SwiGLU in one dispatch.
func (p *pass) encodeGated(e *encoder, o *device.Linear, v variant) error {
	products := [2]*device.Product{&o.Products[0], &o.Products[1]}
	return p.encodeTogether(e, o, v, 0, products[:])
}

// linearVariant chooses by the number of rows and by what the fast kernels read: 4 and 8 bits, or dense rows of whole
// vectors or tiles.
func (p *pass) linearVariant(m *matrix, rows int) (v variant) {
	kind := "dense"
	few, many := m.in%4 == 0, m.in%32 == 0
	if m.format == device.FormatAffine {
		kind = "affine"
		few = m.bits == 4 || m.bits == 8
		many = few
	}
	v = variant{library: "linear_plain", name: plainLinear[kind], constants: m.weightConstants(), count: 3,
		threads: 128}
	switch {
	case rows <= gemvRows && few:
		fast := variant{library: "linear_gemv", name: gemvLinear[kind], constants: m.weightConstants(), count: 6,
			threads: 64}
		fast.constants[3] = u32(rows)
		if m.format == device.FormatAffine && m.in >= splitColumns {
			fast.constants[5] = 1
		}
		v = p.dev.either(fast, v)
		if m.format == device.FormatAffine && rows >= matrixRows && m.bits == 4 && m.group%64 == 0 && !p.dev.opt.BF16 {
			v = p.dev.either(variant{library: "linear_rows", name: "linear_rows",
				constants: [6]uint32{u32(int(m.scaleFormat)), u32(m.group), u32(rows)}, count: 4, threads: 256}, v)
		}
	case rows > gemvRows && many:
		fast := variant{library: "linear_gemm", name: gemmLinear[kind], constants: m.weightConstants(), count: 3,
			threads: 128}
		if p.dev.opt.BF16 {
			fast.name = gemmLinearBF16[kind]
		}
		v = p.dev.either(fast, v)
	}
	return v
}

// Names of the kernels by the kind of weights.
var (
	plainLinear    = map[string]string{"dense": "linear_plain_dense", "affine": "linear_plain_affine"}
	gemvLinear     = map[string]string{"dense": "linear_gemv_dense", "affine": "linear_gemv_affine"}
	gemmLinear     = map[string]string{"dense": "linear_gemm_dense_f16", "affine": "linear_gemm_affine_f16"}
	gemmLinearBF16 = map[string]string{"dense": "linear_gemm_dense_bf16", "affine": "linear_gemm_affine_bf16"}
)

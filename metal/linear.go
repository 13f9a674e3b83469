//go:build unix

package metal

import (
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

const (
	// gemvRows is the most rows that read the weights once in linear_gemv.
	gemvRows = 8
	// splitColumns is from how many columns on the two simdgroups of a threadgroup share their outputs: one step each.
	splitColumns = 1024
	// gemvProducts is the most products of one dispatch of it.
	gemvProducts = 4
)

// encodeLinear runs the products side by side: they share x and write to different buffers. Where linear_gemv takes them, those of one
// form go in one dispatch.
func (p *pass) encodeLinear(e *encoder, o *op) error {
	var done [64]bool
	if len(o.products) > len(done) {
		panic("metal: more than 64 products of one input")
	}
	for i := range o.products {
		if done[i] {
			continue
		}
		v, grid, group := p.linearVariant(o.products[i].W.(*matrix), o.rows)
		if v.library != "linear_gemv" {
			if err := p.encodeProduct(e, o, &o.products[i], v, grid, group); err != nil {
				return err
			}
			continue
		}
		var together [gemvProducts]*device.Product
		n := 0
		for j := i; j < len(o.products) && n < gemvProducts; j++ {
			if other, _, _ := p.linearVariant(o.products[j].W.(*matrix), o.rows); !done[j] && other == v {
				together[n], done[j] = &o.products[j], true
				n++
			}
		}
		if err := p.encodeTogether(e, o, v, together[:n]); err != nil {
			return err
		}
	}
	return nil
}

// encodeProduct runs one product by linear_gemm or linear_plain.
func (p *pass) encodeProduct(e *encoder, o *op, q *device.Product, v variant, grid, group [3]int) error {
	m, dst := q.W.(*matrix), q.Dst.(*buffer)
	params := kernels.LinearParams{Rows: u32(o.rows), Out: u32(m.out), In: u32(m.in)}
	if q.Add {
		params.Add = 1
	}
	bytes, flops := m.cost(o.rows)
	if m.format == device.FormatAffine {
		return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, bytes, flops,
			dst.use(1, write), o.a.use(2, read), m.data.use(3), m.scales.use(4), m.biases.use(5), p.status(6))
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, bytes, flops,
		dst.use(1, write), o.a.use(2, read), m.data.use(3), p.status(6))
}

// cost is what a product of rows moves and computes.
func (m *matrix) cost(rows int) (bytes, flops float64) {
	return float64(m.bytes) + 4*float64(rows)*float64(m.in+m.out), 2 * float64(rows) * float64(m.in) * float64(m.out)
}

// encodeTogether runs up to four products by linear_gemv, one after another along the grid; or gate and up, where v is gated.
func (p *pass) encodeTogether(e *encoder, o *op, v variant, products []*device.Product) error {
	const never = 1 << 31 // a tile beyond every grid
	params := kernels.LinearGemvParams{In: u32(o.a.cols), Tile1: never, Tile2: never, Tile3: never}
	outs := [gemvProducts]*uint32{&params.Out0, &params.Out1, &params.Out2, &params.Out3}
	begins := [gemvProducts]*uint32{nil, &params.Tile1, &params.Tile2, &params.Tile3}
	var uses [1 + 4*gemvProducts]use
	n, tiles := 1, 0
	var bytes, flops float64
	uses[0] = o.a.use(5, read)
	for q := range gemvProducts {
		there := q < len(products)
		of := products[0]
		if there {
			of = products[q]
		}
		m := of.W.(*matrix)
		*outs[q] = u32(m.out)
		uses[n], uses[n+1] = of.Dst.(*buffer).use(1+q, write), m.data.use(6+q)
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
		b, f := m.cost(o.rows)
		bytes, flops = bytes+b, flops+f
		own := divide(m.out, 8) // of a matrix
		if v.constants[5] != 0 {
			own = divide(m.out, 4)
		}
		switch {
		case v.constants[4] != 0:
			tiles = divide(m.out, 4) // gate and up in the same ones
		case q > 0:
			*begins[q] = u32(tiles)
			tiles += own
		default:
			tiles = own
		}
	}
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), [3]int{tiles, 1, 1}, [3]int{64, 1, 1}, bytes, flops, uses[:n]...)
}

// gated returns the variant that runs a Linear of gate and up with the SwiGLU behind it, when that is what the two are.
func (p *pass) gated(linear, after *op) (v variant, ok bool) {
	if linear.kind != opLinear || after.kind != opSwiGLU || len(linear.products) != 2 || linear.rows != after.rows {
		return v, false
	}
	gate, up := &linear.products[0], &linear.products[1]
	if gate.Add || up.Add || gate.Dst.(*buffer) != after.a || up.Dst.(*buffer) != after.b || after.dst != after.a || after.a == after.b {
		return v, false
	}
	v, _, _ = p.linearVariant(gate.W.(*matrix), linear.rows)
	other, _, _ := p.linearVariant(up.W.(*matrix), linear.rows)
	if v.library != "linear_gemv" || other != v {
		return v, false
	}
	v.constants[4], v.constants[5] = 1, 0
	return p.dev.either(v, variant{}), p.dev.fast(v.library)
}

// encodeGated runs gate, up and SwiGLU in one dispatch.
func (p *pass) encodeGated(e *encoder, o *op, v variant) error {
	products := [2]*device.Product{&o.products[0], &o.products[1]}
	return p.encodeTogether(e, o, v, products[:])
}

// linearVariant picks by rows and by what the fast kernels read: 4 and 8 bits, or dense rows of whole vectors or tiles.
func (p *pass) linearVariant(m *matrix, rows int) (v variant, grid, group [3]int) {
	kind := "dense"
	few, many := m.in%4 == 0, m.in%32 == 0
	if m.format == device.FormatAffine {
		kind = "affine"
		few = m.bits == 4 || m.bits == 8
		many = few
	}
	v = variant{library: "linear_plain", name: plainLinear[kind], constants: m.weightConstants(), count: 3, threads: 128}
	switch {
	case rows <= gemvRows && few:
		fast := variant{library: "linear_gemv", name: gemvLinear[kind], constants: m.weightConstants(), count: 6, threads: 64}
		fast.constants[3] = u32(rows)
		if m.format == device.FormatAffine && m.in >= splitColumns {
			fast.constants[5] = 1
		}
		v = p.dev.either(fast, v)
	case rows > gemvRows && many:
		fast := variant{library: "linear_gemm", name: gemmLinear[kind], constants: m.weightConstants(), count: 3, threads: 128}
		if p.dev.opt.BF16 {
			fast.name = gemmLinearBF16[kind]
		}
		v = p.dev.either(fast, v)
	}
	if v.library == "linear_gemm" {
		return v, [3]int{divide(m.out, 32), divide(rows, 32), 1}, [3]int{128, 1, 1}
	}
	return v, groups(m.out, rows, plane), plane
}

// Names of the kernels by the kind of weights.
var (
	plainLinear    = map[string]string{"dense": "linear_plain_dense", "affine": "linear_plain_affine"}
	gemvLinear     = map[string]string{"dense": "linear_gemv_dense", "affine": "linear_gemv_affine"}
	gemmLinear     = map[string]string{"dense": "linear_gemm_dense_f16", "affine": "linear_gemm_affine_f16"}
	gemmLinearBF16 = map[string]string{"dense": "linear_gemm_dense_bf16", "affine": "linear_gemm_affine_bf16"}
)

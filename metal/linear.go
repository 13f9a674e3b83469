//go:build unix

package metal

import (
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// gemvRows is the most rows that read the weights once in linear_gemv.
const gemvRows = 8

// encodeLinear runs the products side by side: they share x and write to different buffers.
func (p *pass) encodeLinear(e *encoder, o *op) error {
	for i := range o.products {
		q := &o.products[i]
		m, dst := q.W.(*matrix), q.Dst.(*buffer)
		params := kernels.LinearParams{Rows: u32(o.rows), Out: u32(m.out), In: u32(m.in)}
		if q.Add {
			params.Add = 1
		}
		v, grid, group := p.linearVariant(m, o.rows)
		bytes := float64(m.bytes) + 4*float64(o.rows)*float64(m.in+m.out)
		flops := 2 * float64(o.rows) * float64(m.in) * float64(m.out)
		var err error
		if m.format == device.FormatAffine {
			err = e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, bytes, flops,
				dst.use(1, write), o.a.use(2, read), m.data.use(3), m.scales.use(4), m.biases.use(5), p.status(6))
		} else {
			err = e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, bytes, flops,
				dst.use(1, write), o.a.use(2, read), m.data.use(3), p.status(6))
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	v = variant{library: "linear_plain", name: "linear_plain_" + kind, constants: m.weightConstants(), count: 3, threads: 128}
	switch {
	case rows <= gemvRows && few:
		fast := variant{library: "linear_gemv", name: "linear_gemv_" + kind, constants: m.weightConstants(), count: 4, threads: 64}
		fast.constants[3] = u32(rows)
		v = p.dev.either(fast, v)
	case rows > gemvRows && many:
		fast := variant{library: "linear_gemm", name: "linear_gemm_" + kind + "_f16", constants: m.weightConstants(), count: 3, threads: 128}
		if p.dev.opt.BF16 {
			fast.name = "linear_gemm_" + kind + "_bf16"
		}
		v = p.dev.either(fast, v)
	}
	switch v.library {
	case "linear_gemv":
		return v, [3]int{divide(m.out, 8), 1, 1}, [3]int{64, 1, 1}
	case "linear_gemm":
		return v, [3]int{divide(m.out, 32), divide(rows, 32), 1}, [3]int{128, 1, 1}
	}
	return v, groups(m.out, rows, plane), plane
}

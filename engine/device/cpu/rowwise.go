package cpu

import (
	"slipway/engine/device"
	"slipway/engine/device/cpu/kernels"
)

// The operations that treat every row by itself, each for rows [lo, hi).

func embed(o *device.Embed, lo, hi int) {
	dst, table := own(o.Dst), o.Table.(matrix)
	for i := lo; i < hi; i++ {
		table.Row(dst.row(i), int(o.Tokens[i]))
	}
}

func rmsNorm(o *device.RMSNorm, lo, hi int) {
	dst, x, weight := own(o.Dst), own(o.X), own(o.Weight)
	for i := lo; i < hi; i++ {
		row := x.row(i)
		kernels.RMSNorm(dst.row(i)[o.Column:o.Column+len(row)], row, weight.f, o.Eps)
	}
}

func swiglu(o *device.SwiGLU, lo, hi int) {
	dst := own(o.Dst)
	n := dst.cols
	kernels.SiluMul(dst.f[lo*n:hi*n], own(o.Gate).f[lo*n:hi*n], own(o.Up).f[lo*n:hi*n])
}

func gather(o *device.Gather, lo, hi int) {
	dst, src := own(o.Dst), own(o.Src)
	for i := lo; i < hi; i++ {
		copy(dst.row(i), src.row(int(o.Indices[i])))
	}
}

func gatedNorm(o *device.GatedNorm, lo, hi int) {
	out, in, gate, weight := own(o.Dst), own(o.O), own(o.Z), own(o.Weight)
	for i := lo; i < hi; i++ {
		dst, x, z := out.row(i), in.row(i), gate.row(i)
		for at := 0; at < len(x); at += o.HeadDim {
			end := at + o.HeadDim
			kernels.RMSNormGated(dst[at:end], x[at:end], weight.f, z[at:end], o.Eps)
		}
	}
}

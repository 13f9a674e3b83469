package weights

import (
	"fmt"
	"testing"

	"slipway/engine/weights/fixture"
)

// Fused projections lie by key head: q(Dk) | k(Dk) | v(r·Dv) | z(r·Dv), and b(r) | a(r). Taken apart, quantised rows
// must keep their own scales.
func TestFusedProjectionsComeApartByHead(t *testing.T) {
	const hk, hv, dk, dv, in = 2, 6, 3, 2, 64
	const r = hv / hk
	// Row values name the row: 100·part + index within the part, and a slope that differs by row.
	row := func(part, index int) []float32 {
		out := make([]float32, in)
		for i := range out {
			out[i] = float32(100*part+index) + float32(i%16)*float32(1+index)
		}
		return out
	}
	var qkvz, ba []float32
	for h := range hk {
		for i := range dk {
			qkvz = append(qkvz, row(1, h*dk+i)...)
		}
		for i := range dk {
			qkvz = append(qkvz, row(2, h*dk+i)...)
		}
		for i := range r * dv {
			qkvz = append(qkvz, row(3, h*r*dv+i)...)
		}
		for i := range r * dv {
			qkvz = append(qkvz, row(4, h*r*dv+i)...)
		}
		for i := range r {
			ba = append(ba, row(5, h*r+i)...)
		}
		for i := range r {
			ba = append(ba, row(6, h*r+i)...)
		}
	}
	const path = "model.layers.0.linear_attn."
	for _, bits := range []int{0, 4, 5, 8} {
		t.Run(fmt.Sprintf("%d bits", bits), func(t *testing.T) {
			f := minimal()
			delete(f, path+"in_proj_qkv.weight")
			if bits == 0 {
				f[path+"in_proj_qkvz.weight"] = fixture.F32(qkvz, len(qkvz)/in, in)
				f[path+"in_proj_ba.weight"] = fixture.F32(ba, len(ba)/in, in)
			} else {
				f.Quantise(path+"in_proj_qkvz", qkvz, len(qkvz)/in, in, bits, 32)
				f.Quantise(path+"in_proj_ba", ba, len(ba)/in, in, bits, 32)
			}
			p, err := open(t, write(t, object{}, single(f), false)).InProjections("layers.0.linear_attn", hk, hv, dk,
				dv, in)
			if err != nil {
				t.Fatal(err)
			}
			check := func(m Matrix, first, part, n int) {
				t.Helper()
				got := make([]float32, in)
				for i := range n {
					m.Row(got, first+i)
					for j, want := range row(part, i) {
						// At most one step of the row's range, and never the 100 that tells parts apart.
						if d := got[j] - want; d > float32(1+i) || d < -float32(1+i) {
							t.Fatalf("part %d row %d element %d: %f, wanted %f", part, i, j, got[j], want)
						}
					}
				}
			}
			if p.QKV.Out != 2*hk*dk+hv*dv || p.Z.Out != hv*dv || p.B.Out != hv || p.A.Out != hv {
				t.Fatalf("outputs %d, %d, %d, %d", p.QKV.Out, p.Z.Out, p.B.Out, p.A.Out)
			}
			check(p.QKV, 0, 1, hk*dk)
			check(p.QKV, hk*dk, 2, hk*dk)
			check(p.QKV, 2*hk*dk, 3, hv*dv)
			check(p.Z, 0, 4, hv*dv)
			check(p.B, 0, 5, hv)
			check(p.A, 0, 6, hv)
		})
	}
	// A fused matrix of the wrong size is named.
	f := minimal()
	f[path+"in_proj_qkvz.weight"] = fixture.F32(qkvz[in:], len(qkvz)/in-1, in)
	_, err := open(t, write(t, object{}, single(f), false)).InProjections("layers.0.linear_attn", hk, hv, dk, dv, in)
	wantMisfit(t, err, "model.safetensors", path+"in_proj_qkvz.weight", "[35 64]")
}

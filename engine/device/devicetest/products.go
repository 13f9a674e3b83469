package devicetest

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"slipway/engine/device"
)

// matrix is uploaded weights and the values that they stand for, [out, in].
type matrix struct {
	device.Matrix
	values []float64
}

// upload makes a random matrix in a format; bits 0 is the float format f.
func (s *suite) upload(t *testing.T, out, in int, f device.Format, bits, group int) matrix {
	t.Helper()
	d := device.MatrixData{Name: "test", Out: out, In: in, Format: f, Bits: bits, Group: group}
	values := make([]float64, out*in)
	if bits == 0 {
		for i := range values {
			var v float32
			d.Data, v = appendFloat(d.Data, f, float32(s.r.NormFloat64()))
			values[i] = float64(v)
		}
	} else {
		d.Format, d.ScaleFormat = device.FormatAffine, f
		d.Data = make([]byte, out*in*bits/8)
		for g := 0; g < len(values); g += group {
			var scale, bias float32
			// of either sign
			d.Scales, scale = appendFloat(d.Scales, f, float32(s.r.NormFloat64())/float32(int(1)<<bits))
			d.Biases, bias = appendFloat(d.Biases, f, float32(s.r.NormFloat64()))
			for i := g; i < g+group; i++ {
				q := s.r.Uint32N(1 << bits)
				stream := d.Data[i/in*in*bits/8:]
				for b := range bits {
					at := i%in*bits + b
					stream[at/8] |= byte(q>>b&1) << (at % 8)
				}
				values[i] = float64(scale)*float64(q) + float64(bias)
			}
		}
	}
	m, err := s.dev.Matrix(d)
	if err != nil {
		t.Fatal(err)
	}
	if m.Out() != out || m.In() != in || m.Bytes() <= 0 {
		t.Fatalf("uploaded as [%d,%d], %d bytes", m.Out(), m.In(), m.Bytes())
	}
	return matrix{m, values}
}

// appendFloat stores v rounded (toward zero) to the format and returns what was stored. Only normal halves are made.
func appendFloat(data []byte, f device.Format, v float32) ([]byte, float32) {
	bits := math.Float32bits(v)
	switch f {
	case device.FormatF32:
		return binary.LittleEndian.AppendUint32(data, bits), v
	case device.FormatBF16:
		bits &= 0xffff0000
		return binary.LittleEndian.AppendUint16(data, uint16(bits>>16)), math.Float32frombits(bits)
	default:
		if v = float32(math.Abs(float64(v))); v < 1e-3 || v > 1e3 {
			v = 0.5
		}
		bits = math.Float32bits(v) &^ 0x1fff
		half := uint16((bits>>23-112)<<10 | bits>>13&0x3ff)
		return binary.LittleEndian.AppendUint16(data, half), math.Float32frombits(bits)
	}
}

func multiply(m matrix, x []float32, rows int) []float64 {
	out, in := m.Out(), m.In()
	y := make([]float64, rows*out)
	for r := range rows {
		for o := range out {
			for k := range in {
				y[r*out+o] += m.values[o*in+k] * float64(x[r*in+k])
			}
		}
	}
	return y
}

func (s *suite) products(t *testing.T) {
	kinds := []struct {
		f           device.Format
		bits, group int
	}{{device.FormatF32, 0, 0}, {device.FormatF16, 0, 0}, {device.FormatBF16, 0, 0}}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for i, group := range []int{32, 64, 128} {
			kinds = append(kinds, kinds[0])
			k := &kinds[len(kinds)-1]
			k.f, k.bits, k.group = []device.Format{device.FormatBF16, device.FormatF16, device.FormatF32}[i], bits,
				group
		}
	}
	const in = 256
	for _, kind := range kinds {
		// Two products of one input, as q and k have; the second is added to what is there. Outputs straddle any tile.
		a, b := s.upload(t, 37, in, kind.f, kind.bits, kind.group), s.upload(t, 16, in, kind.f, kind.bits, kind.group)
		for _, rows := range []int{1, 2, 3, 5, 8, 33, 150} {
			x, before := s.random(rows*in), s.random(rows*16)
			ya, yb := s.buffer(t, rows, 37, nil), s.buffer(t, rows, 16, before)
			s.run(t, plain(rows), func(p device.Pass) {
				p.Linear(s.buffer(t, rows, in, x), []device.Product{
					{W: a.Matrix, Dst: ya}, {W: b.Matrix, Dst: yb, Add: true}}, rows)
			})
			wantB := multiply(b, x, rows)
			for i := range wantB {
				wantB[i] += float64(before[i])
			}
			what := label("format ", kind.f, ", ", kind.bits, " bits, groups of ", kind.group, ", ", rows, " rows")
			s.rows(t, what, ya.Floats(), multiply(a, x, rows), 37)
			s.rows(t, what+", added", yb.Floats(), wantB, 16)
		}
		dst := s.buffer(t, 3, in, nil)
		s.run(t, plain(3), func(p device.Pass) { p.Embed(dst, a.Matrix, []int32{36, 0, 17}) })
		var want []float64
		for _, row := range []int{36, 0, 17} {
			want = append(want, a.values[row*in:(row+1)*in]...)
		}
		s.rows(t, "embedding", dst.Floats(), want, in)
	}
}

func (s *suite) rowsAlone(t *testing.T) {
	if !s.opt.Invariant {
		t.Skip("this device does not promise the same bits for one row and many")
	}
	const in, out, rows = 192, 70, 40
	for _, bits := range []int{0, 3, 4, 8} {
		m := s.upload(t, out, in, device.FormatBF16, bits, 64)
		x := s.random(rows * in)
		all := s.buffer(t, rows, out, nil)
		s.run(t, plain(rows), func(p device.Pass) {
			p.Linear(s.buffer(t, rows, in, x), []device.Product{{W: m.Matrix, Dst: all}}, rows)
		})
		for r := range rows {
			one := s.buffer(t, 1, out, nil)
			s.run(t, plain(1), func(p device.Pass) {
				p.Linear(s.buffer(t, 1, in, x[r*in:(r+1)*in]), []device.Product{{W: m.Matrix, Dst: one}}, 1)
			})
			equalBits(t, label(bits, " bits, row ", r), one.Floats(), all.Floats()[r*out:(r+1)*out])
		}
	}
}

func (s *suite) rowwise(t *testing.T) {
	const eps = 1e-6
	for _, cols := range []int{1, 7, 32, 33, 320} {
		for _, rows := range []int{1, 2, 65} {
			x, z, w := s.random(rows*cols), s.random(rows*cols), s.random(cols)
			what := label(rows, " rows of ", cols)
			norm := func(row []float32) []float64 {
				var sum float64
				for _, v := range row {
					sum += float64(v) * float64(v)
				}
				out := make([]float64, len(row))
				for i, v := range row {
					out[i] = float64(v) / math.Sqrt(sum/float64(len(row))+eps) * float64(w[i])
				}
				return out
			}
			dst, wide := s.buffer(t, rows, cols, nil), s.buffer(t, rows, 2*cols, make([]float32, 2*rows*cols))
			up, bx, bz, bw := s.buffer(t, rows, cols, nil), s.buffer(t, rows, cols, x), s.buffer(t, rows, cols, z),
				s.vector(t, w)
			s.run(t, plain(rows), func(p device.Pass) {
				p.RMSNorm(wide, bx, bw, eps, rows, cols)
				p.SwiGLU(up, bx, bz, rows)
				p.GatedNorm(device.GatedNorm{Dst: dst, O: bx, Z: bz, Weight: bw, HeadDim: cols, Eps: eps})
			})
			var wantNorm, wantUp, wantGated []float64
			for r := range rows {
				n := norm(x[r*cols : (r+1)*cols])
				wantNorm = append(append(wantNorm, make([]float64, cols)...), n...)
				for i, v := range n {
					wantGated = append(wantGated, v*silu(float64(z[r*cols+i])))
					wantUp = append(wantUp, silu(float64(x[r*cols+i]))*float64(z[r*cols+i]))
				}
			}
			s.rows(t, "norm at a column, "+what, wide.Floats(), wantNorm, 2*cols)
			s.rows(t, "swiglu, "+what, up.Floats(), wantUp, cols)
			s.rows(t, "gated norm, "+what, dst.Floats(), wantGated, cols)

			gathered := s.buffer(t, 2, cols, nil)
			s.run(t, plain(rows), func(p device.Pass) { p.Gather(gathered, bx, []int32{int32(rows - 1), 0}) })
			equalBits(t, "gather", gathered.Floats(), append(append([]float32(nil), x[(rows-1)*cols:]...), x[:cols]...))
		}
	}
}

func (s *suite) nan(t *testing.T) {
	const rows, in, out = 9, 64, 33
	m := s.upload(t, out, in, device.FormatBF16, 4, 32)
	x := s.random(rows * in)
	x[4*in+5] = float32(math.NaN())
	y, w := s.buffer(t, rows, out, nil), s.vector(t, s.random(in))
	s.run(t, plain(rows), func(p device.Pass) {
		b := s.buffer(t, rows, in, x)
		p.RMSNorm(b, b, w, 1e-6, rows, 0)
		p.Linear(b, []device.Product{{W: m.Matrix, Dst: y}}, rows)
	})
	for i, v := range y.Floats() {
		if bad := v != v; bad != (i/out == 4) {
			t.Fatalf("row %d output %d is %v", i/out, i%out, v)
		}
	}
}

func (s *suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dst := s.buffer(t, 1, 8, make([]float32, 8))
	p := s.dev.NewPass()
	p.Begin(plain(1))
	p.Gather(dst, s.buffer(t, 1, 8, []float32{1, 1, 1, 1, 1, 1, 1, 1}), []int32{0})
	if err := p.Run(ctx); err != context.Canceled {
		t.Fatalf("error %v, wanted context.Canceled", err)
	}
	equalBits(t, "destination", dst.Floats(), make([]float32, 8))
}

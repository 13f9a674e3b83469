package model

import (
	"math"
	"os"
	"slipway/engine/model/arch"
	"testing"

	"slipway/engine/weights"
)

// A plain evaluation of the formulas in float64, one token after another, straight from the tensors: slow, and
// independent of devices, packing and pages. Names are those after the prefix; norms are zero-centred as in raw files.
type plain struct {
	c *Config
	w map[string][]float64

	shift float64 // added to the stored factors of a norm: 1 in raw files

	s, tail map[int][]float64 // per gated delta net layer: [Hv,Dv,Dk], [3, channels]
	k, v    map[int][]float64 // per attention layer: [positions, Hkv·D]
	hidden  [][][]float64     // [layer][position] after the layer
	final   [][]float64       // after the final norm
	len     int
}

func newPlain(t *testing.T, dir string) *plain {
	t.Helper()
	ckpt, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	c, err := ParseConfig(ckpt.Config, ckpt.Generation)
	if err != nil {
		t.Fatal(err)
	}
	return newPlainOf(t, dir, ckpt, c, 1)
}

// newPlainOf is newPlain of a network that the test describes, with its form of norms.
func newPlainOf(t *testing.T, dir string, ckpt *weights.Checkpoint, c *Config, shift float64) *plain {
	t.Helper()
	p := &plain{c: c, shift: shift, w: map[string][]float64{}, s: map[int][]float64{}, tail: map[int][]float64{},
		k: map[int][]float64{}, v: map[int][]float64{}}
	text, err := os.ReadFile(dir + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range decodeSafetensors(t, text) {
		wide := make([]float64, len(values.values))
		for i, v := range values.values {
			wide[i] = float64(v)
		}
		p.w[name[len(ckpt.Prefix()):]] = wide
	}
	p.hidden = make([][][]float64, len(c.Layers))
	for l := range c.Layers {
		p.s[l] = make([]float64, c.ValueHeads*c.ValueDim*c.KeyDim)
		p.tail[l] = make([]float64, 3*c.ConvChannels())
	}
	return p
}

func (p *plain) mul(name string, x []float64) []float64 {
	w := p.w[name]
	if len(w) == 0 || len(w)%len(x) != 0 {
		panic(name)
	}
	out := make([]float64, len(w)/len(x))
	for o := range out {
		for i, v := range x {
			out[o] += w[o*len(x)+i] * v
		}
	}
	return out
}

func (p *plain) rms(x, w []float64, shift float64) []float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	f := 1 / math.Sqrt(sum/float64(len(x))+float64(p.c.Eps))
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * f * (w[i] + shift)
	}
	return out
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func silu64(x float64) float64    { return x * sigmoid64(x) }

func l2(x []float64, scale float64) []float64 {
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / math.Sqrt(sum+1e-6) * scale
	}
	return out
}

// step takes one token and returns its logits.
func (p *plain) step(token int32) []float64 {
	c := p.c
	x := append([]float64(nil), p.w["embed_tokens.weight"][int(token)*c.Hidden:int(token+1)*c.Hidden]...)
	for l, kind := range c.Layers {
		at := "layers." + itoa(l) + "."
		y := p.rms(x, p.w[at+"input_layernorm.weight"], p.shift)
		var m []float64
		if kind.Mixer == arch.FullAttention {
			m = p.attend(l, at+"self_attn.", y)
		} else {
			m = p.recur(l, at+"linear_attn.", y)
		}
		for i := range x {
			x[i] += m[i]
		}
		y = p.rms(x, p.w[at+"post_attention_layernorm.weight"], p.shift)
		gate, up := p.mul(at+"mlp.gate_proj.weight", y), p.mul(at+"mlp.up_proj.weight", y)
		for i := range gate {
			gate[i] = silu64(gate[i]) * up[i]
		}
		for i, v := range p.mul(at+"mlp.down_proj.weight", gate) {
			x[i] += v
		}
		p.hidden[l] = append(p.hidden[l], append([]float64(nil), x...))
	}
	y := p.rms(x, p.w["norm.weight"], p.shift)
	p.final = append(p.final, y)
	p.len++
	return p.mul("embed_tokens.weight", y)
}

func (p *plain) attend(l int, at string, x []float64) []float64 {
	c, d := p.c, p.c.HeadDim
	rotate := func(h []float64) {
		n := c.RotaryDims / 2
		for i := range n {
			angle := float64(p.len) * math.Pow(c.RopeTheta, -2*float64(i)/float64(c.RotaryDims))
			a, b := h[i], h[i+n]
			h[i], h[i+n] = a*math.Cos(angle)-b*math.Sin(angle), b*math.Cos(angle)+a*math.Sin(angle)
		}
	}
	qg, k, v := p.mul(at+"q_proj.weight", x), p.mul(at+"k_proj.weight", x), p.mul(at+"v_proj.weight", x)
	for h := range c.KVHeads {
		head := p.rms(k[h*d:(h+1)*d], p.w[at+"k_norm.weight"], p.shift)
		rotate(head)
		copy(k[h*d:], head)
	}
	p.k[l], p.v[l] = append(p.k[l], k...), append(p.v[l], v...)
	out := make([]float64, c.Heads*d)
	for h := range c.Heads {
		q := p.rms(qg[2*h*d:(2*h+1)*d], p.w[at+"q_norm.weight"], p.shift)
		rotate(q)
		kv := h / (c.Heads / c.KVHeads)
		scores := make([]float64, p.len+1)
		top := math.Inf(-1)
		for t := range scores {
			key := p.k[l][(t*c.KVHeads+kv)*d:]
			for i := range d {
				scores[t] += q[i] * key[i] / math.Sqrt(float64(d))
			}
			top = max(top, scores[t])
		}
		var sum float64
		for t := range scores {
			scores[t] = math.Exp(scores[t] - top)
			sum += scores[t]
		}
		for i := range d {
			for t := range scores {
				out[h*d+i] += scores[t] / sum * p.v[l][(t*c.KVHeads+kv)*d+i]
			}
			out[h*d+i] *= sigmoid64(qg[(2*h+1)*d+i])
		}
	}
	return p.mul(at+"o_proj.weight", out)
}

func (p *plain) recur(l int, at string, x []float64) []float64 {
	c := p.c
	channels := c.ConvChannels()
	u := p.mul(at+"in_proj_qkv.weight", x)
	taps := p.w[at+"conv1d.weight"]
	y := make([]float64, channels)
	for i := range y {
		var sum float64
		for j := range 3 {
			sum += taps[i*4+j] * p.tail[l][j*channels+i]
		}
		y[i] = silu64(sum + taps[i*4+3]*u[i])
	}
	p.tail[l] = append(append([]float64(nil), p.tail[l][channels:]...), u...)
	z, b, a := p.mul(at+"in_proj_z.weight", x), p.mul(at+"in_proj_b.weight", x), p.mul(at+"in_proj_a.weight", x)
	dk, dv := c.KeyDim, c.ValueDim
	out := make([]float64, c.ValueHeads*dv)
	for h := range c.ValueHeads {
		key := h / (c.ValueHeads / c.KeyHeads)
		q := l2(y[key*dk:(key+1)*dk], 1/math.Sqrt(float64(dk)))
		k := l2(y[(c.KeyHeads+key)*dk:(c.KeyHeads+key+1)*dk], 1)
		v := y[2*c.KeyHeads*dk+h*dv:]
		beta := sigmoid64(b[h])
		alpha := math.Exp(-math.Exp(p.w[at+"A_log"][h]) * math.Log1p(math.Exp(a[h]+p.w[at+"dt_bias"][h])))
		s := p.s[l][h*dv*dk:]
		for i := range dv {
			row := s[i*dk : (i+1)*dk]
			var m, o float64
			for j := range row {
				row[j] *= alpha
				m += row[j] * k[j]
			}
			for j := range row {
				row[j] += beta * (v[i] - m) * k[j]
				o += row[j] * q[j]
			}
			out[h*dv+i] = o
		}
		for i, n := range p.rms(out[h*dv:(h+1)*dv], p.w[at+"norm.weight"], 0) {
			out[h*dv+i] = n * silu64(z[h*dv+i])
		}
	}
	return p.mul(at+"out_proj.weight", out)
}

package dflash

import (
	"math"

	"slipway/engine/weights"
)

// plain evaluates a draft by its formulas in float64, row by row, with nothing but the tensors of the file. A reference
// of its own: published names, shapes and arithmetic of DFlash2.
type plain struct {
	c     Config
	files *weights.Checkpoint
	embed weights.Matrix // of the target
	err   error
}

type vectors = [][]float64

func (p *plain) vector(name string, shape ...int) []float64 {
	f, err := p.files.Floats(name, shape...)
	if err != nil {
		p.err = err
		return make([]float64, shape[0])
	}
	out := make([]float64, len(f))
	for i, v := range f {
		out[i] = float64(v)
	}
	return out
}

// mul multiplies each row by a matrix of the file.
func (p *plain) mul(module string, out, in int, rows vectors) vectors {
	m, err := p.files.Matrix(module, out, in)
	if err != nil {
		p.err = err
		m = weights.Matrix{}
	}
	return product(m, out, in, rows)
}

func product(m weights.Matrix, out, in int, rows vectors) vectors {
	result := make(vectors, len(rows))
	for i := range rows {
		result[i] = make([]float64, out)
	}
	w := make([]float32, in)
	for o := range out {
		if m.Out > 0 {
			m.Row(w, o)
		}
		for i, row := range rows {
			sum := 0.0
			for k, v := range w {
				sum += float64(v) * row[k]
			}
			result[i][o] = sum
		}
	}
	return result
}

func (p *plain) norm(x, weight []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+float64(p.c.Eps))
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * weight[i]
	}
	return out
}

func (p *plain) norms(rows vectors, name string, n int) vectors {
	weight, out := p.vector(name+".weight", n), make(vectors, len(rows))
	for i, row := range rows {
		out[i] = p.norm(row, weight)
	}
	return out
}

// heads norms and rotates each head of a row at a position.
func (p *plain) heads(row, weight []float64, position int) (out []float64) {
	d := p.c.HeadDim
	for at := 0; at < len(row); at += d {
		head := p.norm(row[at:at+d], weight)
		turned := make([]float64, d)
		for i := range d / 2 {
			sin, cos := math.Sincos(float64(position) * math.Pow(p.c.Theta, -2*float64(i)/float64(d)))
			turned[i] = head[i]*cos - head[i+d/2]*sin
			turned[i+d/2] = head[i+d/2]*cos + head[i]*sin
		}
		out = append(out, turned...)
	}
	return out
}

// context are the context rows of taps.
func (p *plain) context(taps vectors) vectors {
	return p.norms(p.mul("fc", p.c.Hidden, len(p.c.Taps)*p.c.Hidden, taps), "hidden_norm", p.c.Hidden)
}

// convolved is one side of a dynamic convolution of rows, with kernels computed from the sub-layer's normed input.
func (p *plain) convolved(module string, side int, kernels, rows vectors) vectors {
	c := p.c
	base, out := p.vector(module+".base_kernel", 2, 2, c.Hidden), make(vectors, len(rows))
	for i := range rows {
		out[i] = make([]float64, c.Hidden)
		for f := range c.Hidden {
			for tap := range 2 {
				if i < tap {
					continue
				}
				group := f / c.GroupSize
				coefficient := base[(side*2+tap)*c.Hidden+f] + kernels[i][(side*2+tap)*c.groups()+group]
				out[i][f] += coefficient * rows[i-tap][f]
			}
		}
	}
	return out
}

// block gives the final rows of a block at positions start, start+1, ... that sees context rows of positions first to
// start-1.
func (p *plain) block(tokens []int32, start, first int, context vectors) vectors {
	c := p.c
	x := make(vectors, len(tokens))
	embedding := make([]float32, c.Hidden)
	for i, id := range tokens {
		p.embed.Row(embedding, int(id))
		for _, v := range embedding {
			x[i] = append(x[i], float64(v)*float64(c.EmbeddingScale))
		}
	}
	add := func(rows vectors) {
		for i := range x {
			for f := range x[i] {
				x[i][f] += rows[i][f]
			}
		}
	}
	for l := range c.Layers {
		at := "layers." + string(rune('0'+l)) + "."
		self, mlp := at+"self_attn.", at+"mlp."
		normed := p.norms(x, at+"input_layernorm", c.Hidden)
		kernels := p.mul(at+"attention_conv.kernel_projection", 4*c.groups(), c.Hidden, normed)
		in := p.convolved(at+"attention_conv", 0, kernels, normed)
		add(p.convolved(at+"attention_conv", 1, kernels, p.attention(self, in, start, first, context)))
		normed = p.norms(x, at+"post_attention_layernorm", c.Hidden)
		kernels = p.mul(at+"mlp_conv.kernel_projection", 4*c.groups(), c.Hidden, normed)
		in = p.convolved(at+"mlp_conv", 0, kernels, normed)
		gate, up := p.mul(mlp+"gate_proj", c.Intermediate, c.Hidden, in), p.mul(mlp+"up_proj", c.Intermediate, c.Hidden,
			in)
		for i := range gate {
			for f, g := range gate[i] {
				gate[i][f] = g / (1 + math.Exp(-g)) * up[i][f]
			}
		}
		add(p.convolved(at+"mlp_conv", 1, kernels, p.mul(mlp+"down_proj", c.Hidden, c.Intermediate, gate)))
	}
	return p.norms(x, "norm", c.Hidden)
}

func (p *plain) attention(self string, in vectors, start, first int, context vectors) vectors {
	c := p.c
	d := c.HeadDim
	all := append(append(vectors{}, context...), in...) // positions first, first+1, ...
	q := p.mul(self+"q_proj", c.Heads*d, c.Hidden, in)
	k, v := p.mul(self+"k_proj", c.KVHeads*d, c.Hidden, all), p.mul(self+"v_proj", c.KVHeads*d, c.Hidden, all)
	qNorm, kNorm := p.vector(self+"q_norm.weight", d), p.vector(self+"k_norm.weight", d)
	for i := range k {
		k[i] = p.heads(k[i], kNorm, first+i)
	}
	out := make(vectors, len(in))
	for i := range in {
		row := p.heads(q[i], qNorm, start+i)
		out[i] = make([]float64, c.Heads*d)
		for h := range c.Heads {
			kv := h / (c.Heads / c.KVHeads) * d
			weight, total := make([]float64, len(all)), 0.0
			for t := range all {
				if start+i-(first+t) >= c.Window { // a block is shorter than any window
					continue
				}
				dot := 0.0
				for f := range d {
					dot += row[h*d+f] * k[t][kv+f]
				}
				weight[t] = math.Exp(dot / math.Sqrt(float64(d)))
				total += weight[t]
			}
			for t := range all {
				for f := range d {
					out[i][h*d+f] += weight[t] / total * v[t][kv+f]
				}
			}
		}
	}
	return p.mul(self+"o_proj", c.Hidden, c.Heads*d, out)
}

// scores are a masked row's for some candidates behind token before.
func (p *plain) scores(row []float64, head weights.Matrix, before int32, ids []int32) []float64 {
	c := p.c
	const selector = "candidate_selector."
	hidden := p.mul(selector+"hidden_projection", c.Rank, c.Hidden, vectors{row})[0]
	predecessors, err := p.files.FloatMatrix(selector+"predecessor_codebook", c.Vocab, c.Rank)
	if err != nil {
		p.err = err
		return nil
	}
	successors, err := p.files.FloatMatrix(selector+"successor_codebook", c.Vocab, c.Rank)
	if err != nil {
		p.err = err
		return nil
	}
	predecessor, successor, w := make([]float32, c.Rank), make([]float32, c.Rank), make([]float32, c.Hidden)
	predecessors.Row(predecessor, int(before))
	out := make([]float64, len(ids))
	for i, id := range ids {
		head.Row(w, int(id))
		logit := 0.0
		for k, v := range w {
			logit += float64(v) * row[k]
		}
		logit *= float64(c.Multiplier)
		if s := float64(c.Softcap); s > 0 {
			logit = s * math.Tanh(logit/s)
		}
		successors.Row(successor, int(id))
		for r := range c.Rank {
			logit += float64(predecessor[r]) * hidden[r] * float64(successor[r])
		}
		out[i] = logit
	}
	return out
}

package weights

import "fmt"

// Raw reports whether the trunk is in Hugging Face form (norms zero-centred in the file). Norm has already corrected
// for it.
func (c *Checkpoint) Raw() bool { return c.raw }

// Prefix is the text before embed_tokens.weight in this checkpoint.
func (c *Checkpoint) Prefix() string { return c.prefix }

// Matrix returns a linear layer of the trunk, e.g. "layers.3.mlp.down_proj", or "embed_tokens".
func (c *Checkpoint) Matrix(module string, out, in int) (Matrix, error) {
	return c.matrix(c.prefix+module, out, in, true)
}

// Embedding returns the embedding table [vocab, hidden]; its rows give the vocabulary.
func (c *Checkpoint) Embedding(hidden int) (Matrix, error) {
	return c.vocabMatrix(c.prefix+"embed_tokens", hidden)
}

// Head returns lm_head [vocab, hidden]; the embedding when tied is set, whether or not the file has an lm_head too.
func (c *Checkpoint) Head(tied bool, hidden int) (Matrix, error) {
	if tied {
		return c.Embedding(hidden)
	}
	for _, path := range []string{"lm_head", "language_model.lm_head", "model.lm_head",
		"model.language_model.lm_head"} {
		if _, ok := c.tensors[path+".weight"]; ok {
			return c.vocabMatrix(path, hidden)
		}
	}
	return Matrix{}, misfit(c.fileFor("lm_head.weight"), "lm_head.weight", "no such tensor",
		"it, because config.json does not tie it to the embedding")
}

func (c *Checkpoint) vocabMatrix(path string, hidden int) (Matrix, error) {
	w, err := c.tensor(path + ".weight")
	if err != nil {
		return Matrix{}, err
	}
	if len(w.Shape) != 2 || w.Shape[0] <= 0 || w.Shape[0] > 1<<24 {
		return Matrix{}, misfit(w.File, w.Name, fmt.Sprintf("shape %v", w.Shape),
			fmt.Sprintf("[vocabulary, %d]", hidden))
	}
	return c.matrix(path, int(w.Shape[0]), hidden, true)
}

// Norm returns the factors of a zero-centred RMS norm of the trunk: w as stored by MLX, 1+w from raw files. [n] f32.
func (c *Checkpoint) Norm(module string, n int) ([]float32, error) {
	return c.norm(c.prefix+module+".weight", n, c.raw)
}

func (c *Checkpoint) norm(name string, n int, shift bool) ([]float32, error) {
	w, err := c.floats(name, n)
	if err == nil && shift {
		for i := range w {
			w[i]++
		}
	}
	return w, err
}

// Floats returns a float tensor of the trunk as it is stored, of the wanted shape, converted to f32.
func (c *Checkpoint) Floats(name string, shape ...int) ([]float32, error) {
	return c.floats(c.prefix+name, shape...)
}

func (c *Checkpoint) floats(name string, shape ...int) ([]float32, error) {
	t, err := c.tensor(name)
	if err != nil {
		return nil, err
	}
	if !t.DType.IsFloat() {
		return nil, misfit(t.File, t.Name, "dtype "+string(t.DType), "F32, F16 or BF16")
	}
	if err := wantShape(t, shape...); err != nil {
		return nil, err
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	return Floats(make([]float32, 0, n), t.DType, t.Data), nil
}

// Conv returns the taps of a layer's causal convolution, [channels, taps], oldest first, in either form.
func (c *Checkpoint) Conv(module string, channels, taps int) ([]float32, error) {
	if c.raw {
		return c.Floats(module+".weight", channels, 1, taps)
	}
	return c.Floats(module+".weight", channels, taps, 1)
}

// Projections are the input projections of a gated delta net layer: QKV [2·Hk·Dk+Hv·Dv, in] with rows q | k | v; Z
// [Hv·Dv, in]; B and A [Hv, in].
type Projections struct{ QKV, Z, B, A Matrix }

// InProjections returns the projections of "layers.N.linear_attn", from split tensors or from fused ones
// (in_proj_qkvz, in_proj_ba), whose rows are taken apart: per key head q(Dk) | k(Dk) | v(r·Dv) | z(r·Dv) and b(r) |
// a(r), r = Hv/Hk.
func (c *Checkpoint) InProjections(module string, hk, hv, dk, dv, in int) (p Projections, err error) {
	path := c.prefix + module + "."
	take := func(into *Matrix, name string, out int) {
		if err == nil {
			*into, err = c.matrix(path+name, out, in, true)
		}
	}
	r := hv / hk
	if _, fused := c.tensors[path+"in_proj_qkvz.weight"]; fused {
		var m Matrix
		take(&m, "in_proj_qkvz", 2*hk*dk+2*hv*dv)
		if err != nil {
			return p, err
		}
		var q, k, v, z []int
		at := 0
		span := func(rows []int, n int) []int {
			for range n {
				rows = append(rows, at)
				at++
			}
			return rows
		}
		for range hk {
			q, k, v, z = span(q, dk), span(k, dk), span(v, r*dv), span(z, r*dv)
		}
		p.QKV = m.Rows(path+"in_proj_qkv", append(append(q, k...), v...))
		p.Z = m.Rows(path+"in_proj_z", z)
	} else {
		take(&p.QKV, "in_proj_qkv", 2*hk*dk+hv*dv)
		take(&p.Z, "in_proj_z", hv*dv)
	}
	if _, fused := c.tensors[path+"in_proj_ba.weight"]; fused {
		var m Matrix
		take(&m, "in_proj_ba", 2*hv)
		if err != nil {
			return p, err
		}
		var b, a []int
		for i := range 2 * hv {
			if i%(2*r) < r {
				b = append(b, i)
			} else {
				a = append(a, i)
			}
		}
		p.B, p.A = m.Rows(path+"in_proj_b", b), m.Rows(path+"in_proj_a", a)
	} else {
		take(&p.B, "in_proj_b", hv)
		take(&p.A, "in_proj_a", hv)
	}
	return p, err
}

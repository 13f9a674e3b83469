package model

import (
	"math"
	"strconv"

	"slipway/engine/device"
	"slipway/engine/model/arch"
	"slipway/engine/weights"
)

// layer is one decoder layer: a mixer (attention or gated delta net, the other nil) and an MLP.
type layer struct {
	inputNorm, postNorm device.Buffer
	attention           *attentionLayer
	recurrent           *recurrentLayer
	gateUp              []device.Product // into work.gate, work.up
	down                []device.Product // added to work.x
}

type attentionLayer struct {
	index        int // in the pool of pages
	qNorm, kNorm device.Buffer
	in           []device.Product // q with gate, k, v
	out          []device.Product // added to work.x
}

type recurrentLayer struct {
	index        int           // in the state
	conv         device.Buffer // planes [taps, channels]
	aLog, dtBias device.Buffer
	norm         device.Buffer
	in           []device.Product // qkv, z, b, a
	out          []device.Product // added to work.x
}

// mtpHead is the multi-token prediction head.
type mtpHead struct {
	embedNorm, hiddenNorm, norm device.Buffer
	fc                          []device.Product // from work.pair into work.x
	layer                       layer
	kv                          device.KV
}

// loader uploads tensors and remembers the first error, so that loading reads as a list of what there is.
type loader struct {
	dev   device.Device
	ckpt  *weights.Checkpoint
	c     *Config
	err   error
	bytes int64
}

// source is where a layer's tensors come from: the trunk or the MTP head.
type source interface {
	Matrix(module string, out, in int) (weights.Matrix, error)
	Norm(module string, n int) ([]float32, error)
}

func (l *loader) network(n *Network) {
	c := l.c
	table, err := l.ckpt.Embedding(c.Hidden)
	n.embed = l.upload(table, err)
	if c.Tied {
		n.head = n.embed
	} else {
		n.head = l.upload(l.ckpt.Head(false, c.Hidden))
	}
	if l.err != nil {
		return
	}
	for _, rows := range []int{n.embed.Out(), n.head.Out()} {
		if rows != c.VocabSize {
			l.err = misfit("vocab_size", strconv.Itoa(c.VocabSize), strconv.Itoa(rows)+", the rows of the embedding "+
				"and of lm_head")
			return
		}
	}
	n.norm = l.vector(l.ckpt.Norm("norm", c.Hidden))
	attention, recurrent := 0, 0
	for i, kind := range c.Layers {
		module := "layers." + strconv.Itoa(i) + "."
		var y layer
		switch kind.Mixer {
		case arch.FullAttention:
			y = l.attentionLayer(l.ckpt, module, attention)
			attention++
		case arch.LinearAttention:
			y = l.recurrentLayer(module, recurrent)
			recurrent++
		}
		if kind.FeedForward != arch.Dense {
			l.fail(misfit("num_experts", "a mixture of experts in layer "+strconv.Itoa(i), "dense layers"))
		}
		n.layers = append(n.layers, y)
	}
	if n.opt.Draft == DraftMTP && l.err == nil {
		m := l.ckpt.MTP()
		if m == nil {
			l.err = ErrNoMTP
			return
		}
		n.mtp = &mtpHead{
			embedNorm:  l.vector(m.Norm("pre_fc_norm_embedding", c.Hidden)),
			hiddenNorm: l.vector(m.Norm("pre_fc_norm_hidden", c.Hidden)),
			norm:       l.vector(m.Norm("norm", c.Hidden)),
			fc:         []device.Product{l.product(m, "fc", c.Hidden, 2*c.Hidden)},
			layer:      l.attentionLayer(m, "layers.0.", 0),
		}
	}
}

func (l *loader) attentionLayer(from source, module string, index int) layer {
	c := l.c
	y := l.block(from, module)
	self := module + "self_attn."
	kv := c.KVHeads * c.HeadDim
	y.attention = &attentionLayer{
		index: index,
		qNorm: l.vector(from.Norm(self+"q_norm", c.HeadDim)),
		kNorm: l.vector(from.Norm(self+"k_norm", c.HeadDim)),
		in: []device.Product{l.product(from, self+"q_proj", 2*c.Heads*c.HeadDim, c.Hidden),
			l.product(from, self+"k_proj", kv, c.Hidden), l.product(from, self+"v_proj", kv, c.Hidden)},
		out: []device.Product{l.product(from, self+"o_proj", c.Hidden, c.Heads*c.HeadDim)},
	}
	return y
}

func (l *loader) recurrentLayer(module string, index int) layer {
	c := l.c
	y := l.block(l.ckpt, module)
	linear := module + "linear_attn"
	if l.err != nil {
		return y
	}
	p, err := l.ckpt.InProjections(linear, c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim, c.Hidden)
	taps, err2 := l.ckpt.Conv(linear+".conv1d", c.ConvChannels(), c.ConvTaps)
	y.recurrent = &recurrentLayer{
		index:  index,
		aLog:   l.vector(l.ckpt.Floats(linear+".A_log", c.ValueHeads)),
		dtBias: l.vector(l.ckpt.Floats(linear+".dt_bias", c.ValueHeads)),
		norm:   l.vector(l.ckpt.Floats(linear+".norm.weight", c.ValueDim)),
		in: []device.Product{{W: l.upload(p.QKV, err)}, {W: l.upload(p.Z, err)},
			{W: l.upload(p.B, err)}, {W: l.upload(p.A, err)}},
		out: []device.Product{l.product(l.ckpt, linear+".out_proj", c.Hidden, c.ValueHeads*c.ValueDim)},
	}
	y.recurrent.conv = l.vector(planes(taps, c.ConvTaps), err2)
	return y
}

// planes turns [channels, taps] into [taps, channels].
func planes(taps []float32, n int) []float32 {
	out := make([]float32, len(taps))
	channels := len(taps) / n
	for i, v := range taps {
		out[i%n*channels+i/n] = v
	}
	return out
}

// block loads what both kinds of layer have.
func (l *loader) block(from source, module string) layer {
	c := l.c
	return layer{
		inputNorm: l.vector(from.Norm(module+"input_layernorm", c.Hidden)),
		postNorm:  l.vector(from.Norm(module+"post_attention_layernorm", c.Hidden)),
		gateUp: []device.Product{l.product(from, module+"mlp.gate_proj", c.Intermediate, c.Hidden),
			l.product(from, module+"mlp.up_proj", c.Intermediate, c.Hidden)},
		down: []device.Product{l.product(from, module+"mlp.down_proj", c.Hidden, c.Intermediate)},
	}
}

// product uploads a linear layer; its destination is set when the buffers exist.
func (l *loader) product(from source, module string, out, in int) device.Product {
	if l.err != nil {
		return device.Product{}
	}
	return device.Product{W: l.upload(from.Matrix(module, out, in))}
}

func (l *loader) upload(m weights.Matrix, err error) device.Matrix {
	if l.err != nil || err != nil {
		l.fail(err)
		return nil
	}
	w, err := l.dev.Matrix(OnDevice(m))
	if err != nil {
		l.fail(err)
		return nil
	}
	l.bytes += w.Bytes()
	return w
}

// OnDevice is a matrix of a file as a device takes it. It shares m's slices.
func OnDevice(m weights.Matrix) device.MatrixData {
	data := device.MatrixData{Name: m.Name, Out: m.Out, In: m.In, Data: m.Data}
	if m.Bits > 0 {
		data.Format, data.Bits, data.Group = device.FormatAffine, m.Bits, m.Group
		data.Scales, data.Biases, data.ScaleFormat = m.Scales, m.Biases, format(m.ScaleDType)
	} else {
		data.Format = format(m.DType)
	}
	return data
}

func format(t weights.DType) device.Format {
	switch t {
	case weights.F32:
		return device.FormatF32
	case weights.F16:
		return device.FormatF16
	default:
		return device.FormatBF16
	}
}

func (l *loader) vector(data []float32, err error) device.Buffer {
	if l.err != nil || err != nil {
		l.fail(err)
		return nil
	}
	b, err := l.dev.Vector(data)
	if err != nil {
		l.fail(err)
		return nil
	}
	l.bytes += int64(len(data)) * 4
	return b
}

func (l *loader) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// inverseFrequencies are θ^(-2i/d) for the rotary pairs.
func inverseFrequencies(c *Config) []float64 {
	inverse := make([]float64, c.RotaryDims/2)
	for i := range inverse {
		inverse[i] = math.Pow(c.RopeTheta, -2*float64(i)/float64(c.RotaryDims))
	}
	return inverse
}

package dflash

import (
	"errors"
	"math"
	"strconv"

	"slipway/engine/device"
	"slipway/engine/model"
	"slipway/engine/weights"
)

// Checkpoint is an opened draft. It owns mappings that a Network reads until Close.
type Checkpoint struct {
	Config Config
	files  *weights.Checkpoint
}

// Open maps the draft in a folder: see [weights.OpenDraft]. Errors are *MisfitError, *weights.MisfitError, and the
// system's.
func Open(dir string) (*Checkpoint, error) {
	files, err := weights.OpenDraft(dir)
	if err != nil {
		return nil, err
	}
	config, err := ParseConfig(files.Config)
	if err != nil {
		files.Close()
		return nil, err
	}
	return &Checkpoint{config, files}, nil
}

// Close ends the mappings. No network of the draft may be used afterwards.
func (c *Checkpoint) Close() error { return c.files.Close() }

// Dir is the folder that was opened.
func (c *Checkpoint) Dir() string { return c.files.Dir }

// Mappings are the mapped files, for a device that reads weights in place. None where they are float and quantize is
// to convert them: the device then holds matrices that are not in the file.
func (c *Checkpoint) Mappings(quantize bool) [][]byte {
	if quantize && !c.files.Has("fc.scales") {
		return nil
	}
	return c.files.Mappings()
}

// Options say how a draft is loaded.
type Options struct {
	Embedding, Head device.Matrix // of the target
	Sequences       int           // that draft at a time
	Quantize        bool          // float matrices become 4 bit in groups of 64; selector, norms and base kernels stay
}

// quantizedGroup is the group size of Options.Quantize.
const quantizedGroup = 64

// layer is one layer of the draft.
type layer struct {
	inputNorm, postNorm device.Buffer
	attentionConv       conv
	mlpConv             conv
	query, output       []device.Product
	keysValues          []device.Product
	queryNorm, keyNorm  device.Buffer
	gateUp, down        []device.Product
}

// conv is a grouped dynamic convolution: kernel = base + projection of the sub-layer's normed input.
type conv struct {
	base       []float32        // [side 2][tap 2][hidden]
	projection []device.Product // to [side 2][tap 2][group]
}

// loader uploads tensors and remembers the first error.
type loader struct {
	dev   device.Device
	files *weights.Checkpoint
	opt   Options
	bytes int64
	err   error
}

// load puts the weights on the device.
func (n *Network) load(files *weights.Checkpoint) error {
	l, c := &loader{dev: n.dev, files: files, opt: n.opt}, n.config
	n.fc = l.product("fc", c.Hidden, len(c.Taps)*c.Hidden)
	n.hiddenNorm, n.norm = l.norm("hidden_norm", c.Hidden), l.norm("norm", c.Hidden)
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for i := range c.Layers {
		at := "layers." + strconv.Itoa(i) + "."
		self, mlp := at+"self_attn.", at+"mlp."
		n.layers = append(n.layers, layer{
			inputNorm: l.norm(at+"input_layernorm", c.Hidden), postNorm: l.norm(at+"post_attention_layernorm",
				c.Hidden),
			attentionConv: l.conv(at+"attention_conv", c), mlpConv: l.conv(at+"mlp_conv", c),
			query: l.product(self+"q_proj", q, c.Hidden), output: l.product(self+"o_proj", c.Hidden, q),
			keysValues: append(l.product(self+"k_proj", kv, c.Hidden), l.product(self+"v_proj", kv, c.Hidden)...),
			queryNorm:  l.norm(self+"q_norm", c.HeadDim), keyNorm: l.norm(self+"k_norm", c.HeadDim),
			gateUp: append(l.product(mlp+"gate_proj", c.Intermediate, c.Hidden), l.product(mlp+"up_proj",
				c.Intermediate, c.Hidden)...),
			down: l.product(mlp+"down_proj", c.Hidden, c.Intermediate),
		})
	}
	const selector = "candidate_selector."
	n.hiddenProjection = l.upload(files.Matrix(selector+"hidden_projection", c.Rank, c.Hidden))
	n.predecessor = l.table(selector+"predecessor_codebook", c.Vocab, c.Rank)
	n.successor = l.table(selector+"successor_codebook", c.Vocab, c.Rank)
	n.weightBytes = l.bytes
	return l.err
}

func (l *loader) product(module string, out, in int) []device.Product {
	m, err := l.files.Matrix(module, out, in)
	if err == nil && l.err == nil && l.opt.Quantize {
		m, err = weights.Quantize4(m, quantizedGroup)
	}
	return []device.Product{{W: l.upload(m, err)}}
}

func (l *loader) upload(m weights.Matrix, err error) device.Matrix {
	if l.err = errors.Join(l.err, err); l.err != nil {
		return nil
	}
	w, err := l.dev.Matrix(model.OnDevice(m))
	if err != nil {
		l.err = err
		return nil
	}
	l.bytes += w.Bytes()
	return w
}

func (l *loader) conv(module string, c Config) conv {
	return conv{l.floats(module+".base_kernel", 2, convTaps, c.Hidden), l.product(module+".kernel_projection",
		2*convTaps*c.groups(), c.Hidden)}
}

func (l *loader) floats(name string, shape ...int) []float32 {
	if l.err != nil {
		return nil
	}
	f, err := l.files.Floats(name, shape...)
	l.err = err
	l.bytes += 4 * int64(len(f))
	return f
}

func (l *loader) norm(module string, n int) device.Buffer {
	f := l.floats(module+".weight", n)
	if l.err != nil {
		return nil
	}
	b, err := l.dev.Vector(f)
	l.err = err
	return b
}

// table is one of the selector's, which stays in the file's form: a block reads some rows of it.
func (l *loader) table(name string, out, in int) weights.Matrix {
	if l.err != nil {
		return weights.Matrix{}
	}
	m, err := l.files.FloatMatrix(name, out, in)
	l.err = err
	l.bytes += m.Bytes()
	return m
}

// frequencies are θ^(-2i/d) for the rotary pairs of a head.
func (c Config) frequencies() []float64 {
	f := make([]float64, c.HeadDim/2)
	for i := range f {
		f[i] = math.Pow(c.Theta, -2*float64(i)/float64(c.HeadDim))
	}
	return f
}

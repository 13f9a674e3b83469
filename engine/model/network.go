package model

import (
	"fmt"
	"sync"

	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/engine/weights"
)

// Options bounds a network's memory.
type Options struct {
	WindowTokens int             // longest sequence; 0 means the model's own limit
	MaxSequences int             // open at a time; 0 means 2
	ChunkTokens  int             // preferred rows of a prefill pass; 0 means 512
	ExtraPages   int             // pages beyond what the sequences need, for restore points
	KVFormat     device.KVFormat // of keys and values; the MTP head keeps its own in the device's format
	TapeTokens   int             // latest decoded tokens that a sequence can rewind; 0 means none
	TapLayers    []int           // layers whose output rows are kept, for Tap and the Taps of segments
	Draft        Draft           // what is loaded beside the network to propose tokens
	SectionRow   int             // bytes a position of what points keep of a draft beside the network; 0: nothing
	SectionRows  int             // positions of that, at most
}

// Draft is a way to propose tokens that the network then verifies.
type Draft int

const (
	NoDraft  Draft = iota // nothing of a draft is loaded
	DraftMTP              // the checkpoint's own MTP head: its weights, and keys and values for every page
)

// Network is a loaded model. Its methods may be called from several goroutines; passes run one after another.
type Network struct {
	config *Config
	opt    Options
	dev    device.Device

	embed, head  device.Matrix
	headProducts []device.Product // lm_head into work.logits
	layers       []layer
	norm         device.Buffer
	mtp          *mtpHead
	inverse      []float64 // rotary frequencies

	mu            sync.Mutex
	idle          []device.State // one a sequence that may still be opened
	kv            device.KV
	pages         *memory.Pages
	mtpPages      *memory.Pages
	stateGeometry device.StateGeometry

	weightBytes int64
	work        work
	segments    []device.Segment // of the pass being recorded
	sequences   []*Sequence      // theirs
	pass        device.Pass
	before      []device.State // of a prefill's segments, to go back to; made when first needed
}

// Config is the network's configuration. It must not be changed.
func (n *Network) Config() *Config { return n.config }

// Embedding and Head are the matrices that a draft beside the network shares, [VocabSize, Hidden].
func (n *Network) Embedding() device.Matrix { return n.embed }
func (n *Network) Head() device.Matrix      { return n.head }

// WindowTokens bounds the length of every sequence.
func (n *Network) WindowTokens() int { return n.opt.WindowTokens }

// ChunkTokens is the preferred number of tokens of a prefill pass.
func (n *Network) ChunkTokens() int { return n.opt.ChunkTokens }

// Memory is what a network holds, in bytes. The pools count as full; a device may take their memory only as it is used.
type Memory struct{ Weights, KVPages, States, Work int64 }

// MemoryBytes adds up what the network holds.
func (n *Network) MemoryBytes() Memory {
	m := Memory{Weights: n.weightBytes, KVPages: n.kv.Bytes(), Work: n.work.bytes()}
	if n.mtp != nil {
		m.KVPages += n.mtp.kv.Bytes()
	}
	s := n.stateGeometry
	per := int64(s.ValueHeads)*int64(s.ValueDim)*int64(s.KeyDim) + int64(s.ConvTaps-1)*int64(s.ConvChannels)
	m.States = 4 * int64(s.Layers) * per * int64(n.opt.MaxSequences+len(n.before))
	return m
}

// ReturnPages gives the memory of unreferenced attention pages back to the system, where the device can.
func (n *Network) ReturnPages() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	give := func(kv device.KV, book *memory.Pages) error {
		if r, ok := kv.(device.PageReturn); ok {
			return r.ReturnPages(book.FreePages())
		}
		return nil
	}
	err := give(n.kv, n.pages)
	if n.mtp != nil && err == nil {
		err = give(n.mtp.kv, n.mtpPages)
	}
	return err
}

// spareRows is what a pass may hold beyond a chunk for each sequence: decode and verification rows beside a prefill.
const spareRows = 8

// maxRows is the largest pass.
func (n *Network) maxRows() int { return n.opt.ChunkTokens + spareRows*n.opt.MaxSequences }

// complete fills in defaults and refuses options that cannot be honoured.
func (o Options) complete(c *Config) (Options, error) {
	if o.WindowTokens == 0 {
		o.WindowTokens = c.MaxPositions
	}
	if o.MaxSequences == 0 {
		o.MaxSequences = 2
	}
	if o.ChunkTokens == 0 {
		o.ChunkTokens = 512
	}
	switch {
	case o.WindowTokens < 1 || o.WindowTokens > c.MaxPositions:
		return o, fmt.Errorf("a window of %d tokens: the model takes 1 to %d", o.WindowTokens, c.MaxPositions)
	case o.MaxSequences < 1 || o.ChunkTokens < 1 || o.ExtraPages < 0:
		return o, fmt.Errorf("%d sequences, chunks of %d, %d extra pages: the first two must be positive, the last "+
			"not negative", o.MaxSequences, o.ChunkTokens, o.ExtraPages)
	}
	for _, l := range o.TapLayers {
		if l < 0 || l >= len(c.Layers) {
			return o, fmt.Errorf("tap of layer %d: the model has %d", l, len(c.Layers))
		}
	}
	o.ChunkTokens = min(o.ChunkTokens, o.WindowTokens)
	return o, nil
}

// Load builds the network on dev from an opened checkpoint. The checkpoint must stay open as long as the network is
// used when the device reads weights in place. Errors about content are *weights.MisfitError.
func Load(dev device.Device, ckpt *weights.Checkpoint, opt Options) (*Network, error) {
	config, err := ParseConfig(ckpt.Config, ckpt.Generation)
	if err != nil {
		return nil, err
	}
	return build(dev, ckpt, config, opt)
}

// build is Load of a network that its family has described.
func build(dev device.Device, ckpt *weights.Checkpoint, config *Config, opt Options) (*Network, error) {
	opt, err := opt.complete(config)
	if err != nil {
		return nil, err
	}
	n := &Network{config: config, opt: opt, dev: dev, inverse: inverseFrequencies(config), pass: dev.NewPass()}
	l := &loader{dev: dev, ckpt: ckpt, c: config}
	l.network(n)
	if l.err != nil {
		return nil, l.err
	}
	n.weightBytes = l.bytes
	if err := n.allocate(); err != nil {
		return nil, err
	}
	return n, nil
}

// startTape starts a state's tape if one is wanted.
func (n *Network) startTape(s device.State) error {
	if n.opt.TapeTokens == 0 {
		return nil
	}
	return s.Record(n.opt.TapeTokens)
}

// allocate makes page pools, states and activation buffers.
func (n *Network) allocate() error {
	c := n.config
	pages := n.opt.MaxSequences*((n.opt.WindowTokens+device.PageTokens-1)/device.PageTokens) + n.opt.ExtraPages
	n.pages = memory.NewPages(pages)
	n.stateGeometry = device.StateGeometry{Layers: len(c.Layers) - c.AttentionLayers(), KeyHeads: c.KeyHeads,
		ValueHeads: c.ValueHeads,
		KeyDim:     c.KeyDim, ValueDim: c.ValueDim, ConvChannels: c.ConvChannels(), ConvTaps: c.ConvTaps}
	var err error
	if n.kv, err = n.dev.KV(trunkKV(c, pages, n.opt.KVFormat)); err != nil {
		return err
	}
	if n.mtp != nil {
		n.mtpPages = memory.NewPages(pages)
		if n.mtp.kv, err = n.dev.KV(mtpKV(c, pages)); err != nil {
			return err
		}
	}
	for range n.opt.MaxSequences {
		s, err := n.dev.State(n.stateGeometry)
		if err != nil {
			return err
		}
		if err := n.startTape(s); err != nil {
			return err
		}
		n.idle = append(n.idle, s)
	}
	return n.work.allocate(n)
}

package main

import (
	"fmt"
	"log/slog"
	"time"

	"slipway/engine/api"
	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/engine/memory/disk"
	"slipway/engine/memory/keep"
	"slipway/engine/model"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
	"slipway/engine/weights"
)

// loaded is a model in memory with its text side.
type loaded struct {
	checkpoint *weights.Checkpoint
	opened     // nothing while the model is unloaded
	log        *slog.Logger
	network    *network
	text       *text.Model
	defaults   sample.Params

	kv         device.KVFormat
	bf16       bool         // the operands on Metal
	key        memory.Key   // what states are computed under
	extraPages int          // of the network's pool, for restore points
	keeper     *keep.Keeper // nil: nothing is kept between requests
	disk       *disk.Store  // nil: not on disk
}

// load opens the folder and puts the weights on the device. The window is checked against the model's own before any
// weight is touched.
func load(s settings, log *slog.Logger) (l *loaded, err error) {
	l = &loaded{log: log}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.text, err = text.Load(s.modelDir); err != nil {
		return l, err
	}
	if l.checkpoint, err = weights.Open(s.modelDir); err != nil {
		return l, err
	}
	if l.defaults, err = defaultsOf(l.checkpoint.Generation); err != nil {
		return l, err
	}
	config, err := model.ParseConfig(l.checkpoint.Config, l.checkpoint.Generation)
	if err != nil {
		return l, err
	}
	if !s.windowSet {
		s.window = min(s.window, config.MaxPositions)
	}
	if s.window > config.MaxPositions {
		return l, usage("--window %d: the model's own window is %d", s.window, config.MaxPositions)
	}
	for _, id := range config.EOS {
		if vocab := l.text.Tokenizer.VocabSize(); int(id) >= vocab {
			return l, &weights.MisfitError{File: "config.json or generation_config.json", Tensor: "eos_token_id", Found: fmt.Sprint(id),
				Wanted: fmt.Sprintf("one of the tokenizer's ids, [0,%d): rows above are never chosen, so no reply would end", vocab)}
		}
	}
	l.bf16 = s.operands == "bf16"
	if l.opened, err = openDevice(s.device, l.checkpoint.Mappings(), l.bf16, l.log); err != nil {
		return l, err
	}
	if l.kv = l.takeKV(s.kv); l.kv == device.KVQ8 && config.HeadDim%device.KVGroup != 0 {
		return l, usage("--kv %s: this model's attention heads have %d dimensions, and 8 bit takes multiples of %d; leave --kv out", s.kv, config.HeadDim, device.KVGroup)
	}
	options := model.Options{WindowTokens: s.window, MaxSequences: s.parallel, KVFormat: l.kv}
	if s.cacheMemory > 0 {
		l.extraPages = extraPages(model.PageBytes(l.device, config, l.kv), s.cacheMemory)
		options.ExtraPages, options.TapeTokens = l.extraPages, tapeTokens
	}
	n, err := l.loadWeights(options)
	if beyondF16(err) && s.operands != "f16" {
		n, err = l.loadInBF16(s, options)
	}
	if err != nil {
		err = l.saidRoom(err, s, options, config)
		return l, err
	}
	l.network = &network{Network: n, vocab: config.VocabSize, window: n.WindowTokens(), chunk: n.ChunkTokens(), unload: l.close,
		load: func() (*model.Network, error) { return l.reload(s, options) }}
	l.network.gpu.now = l.gpuSeconds()
	if l.key, err = l.keyOf(s); err != nil {
		return l, err
	}
	return l, nil
}

// gpuSeconds is the clock of the GPU that is open at the time; nil on the CPU.
func (l *loaded) gpuSeconds() func() float64 {
	if l.metal == nil {
		return nil
	}
	return func() float64 {
		if l.metal == nil {
			return 0 // loaded again, on the CPU
		}
		return l.metal.GPUSeconds()
	}
}

// loadWeights puts the weights on the device, and on a GPU brings them into memory before the first pass.
func (l *loaded) loadWeights(options model.Options) (*model.Network, error) {
	n, err := model.Load(l.device, l.checkpoint, options)
	if err != nil {
		return nil, err
	}
	if err := l.ready(l.log); err != nil {
		return nil, err
	}
	return n, l.tryPrefill(n)
}

// loadInBF16 opens the device again with the wider range, for weights whose activations leave f16's.
func (l *loaded) loadInBF16(s settings, options model.Options) (n *model.Network, err error) {
	l.device.Close()
	l.bf16 = true
	if l.opened, err = openDevice(s.device, l.checkpoint.Mappings(), true, l.log); err != nil {
		return nil, err
	}
	l.notes = append(l.notes, "activations of this model leave the range of f16, so prompts are multiplied in bf16, which is less exact; --operands bf16 says so from the start")
	return l.loadWeights(options)
}

// reload is load's last part once more, after close. Weights that changed meanwhile are refused: what is known of them, and
// the states on disk, belong to the old ones.
func (l *loaded) reload(s settings, options model.Options) (n *model.Network, err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.checkpoint, err = weights.Open(s.modelDir); err != nil {
		return nil, err
	}
	if l.opened, err = openDevice(s.device, l.checkpoint.Mappings(), l.bf16, l.log); err != nil {
		return nil, err
	}
	l.kv = l.takeKV(s.kv)
	key, err := l.keyOf(s)
	if err != nil {
		return nil, err
	}
	if key != l.key {
		return nil, fmt.Errorf("the files in %s changed while the model was unloaded; start the server anew", s.modelDir)
	}
	return l.loadWeights(options)
}

// close gives back what load had taken, the text side aside.
func (l *loaded) close() {
	if l.device != nil {
		l.device.Close()
	}
	if l.checkpoint != nil {
		l.checkpoint.Close()
	}
	l.opened, l.checkpoint = opened{}, nil
}

// defaultsOf reads the sampling values that the model's makers recommend; without generation_config.json they are neutral.
func defaultsOf(generation []byte) (sample.Params, error) {
	if generation == nil {
		return sample.Neutral(), nil
	}
	p, err := sample.ParseDefaults(generation)
	if err != nil {
		return p, fmt.Errorf("generation_config.json: %w", err)
	}
	return p, nil
}

// engine makes the queue over the network and completes the API's options.
func (l *loaded) engine(s settings, options *api.Options, log *slog.Logger) (*serve.Engine, error) {
	if err := l.openCache(s, log); err != nil {
		return nil, err
	}
	var engine *serve.Engine
	metrics := api.NewMetrics(log, func() serve.Status { return engine.Status() }, version, s.modelID, s.revision)
	vocab := l.text.Tokenizer.VocabSize()
	engine, err := serve.New(l.network, serve.Options{
		Parallel: s.parallel, Queue: s.queue, VocabTokens: vocab, EndTokens: l.network.Config().EOS, Keeper: l.keeper, IdleAfter: s.idleUnload,
		Memory: machineMemory, KeepAwake: keepAwake(log),
		Now: time.Now, Log: log, OnEnd: metrics.OnEnd,
	})
	if err != nil {
		return nil, err
	}
	options.Memory = l.memory()
	if l.network.gpu.now != nil {
		options.GPU = l.network.gpu.told
	}
	options.Keeper, options.Normalize = l.keeper, s.normalize
	options.Profile = s.profile
	if l.kv != device.KVNative {
		options.Approximations = append(options.Approximations, "keys and values in "+l.key.KVFormat)
	}
	if l.metal != nil && l.bf16 {
		options.Approximations = append(options.Approximations, "operands of prefill in bf16")
	}
	options.Numerics = l.key.Numerics
	options.Device, options.KVFormat, options.PrefillPolicy = l.key.Device, l.key.KVFormat, l.key.Policy.Name
	options.ShowSnippets = s.addr.Addr().IsLoopback()
	options.Engine, options.Metrics, options.Defaults = engine, metrics, l.defaults
	options.Tokenizer, options.Template, options.VocabTokens = l.text.Tokenizer, l.text.Template, vocab
	return engine, nil
}

// memory tells what the model holds. Its sizes stay the same when it is loaded again.
func (l *loaded) memory() func() api.Memory {
	n := l.network
	held := n.MemoryBytes()
	var points int64
	if l.keeper != nil {
		points = l.keeper.Budget(memory.InMemory).TotalBytes
	}
	m := api.Memory{WeightsBytes: held.Weights, ContextBytes: held.KVPages - int64(l.extraPages)*n.PageBytes() + held.States, WorkBytes: held.Work, PointsBudgetBytes: points}
	return func() api.Memory {
		m := m
		m.Loaded = !n.asleep.Load()
		return m
	}
}

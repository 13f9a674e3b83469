package host

import (
	"errors"
	"fmt"

	"slipway/engine/device"
	"slipway/engine/families"
	"slipway/engine/model"
	"slipway/engine/sample"
	"slipway/engine/text"
	"slipway/engine/weights"
	"slipway/mtphead"
)

// load opens the folder and puts the weights on the device. The window is checked against the model's own before any
// weight is touched.
func (h *Host) load() (err error) {
	if h.checkpoint, err = weights.Open(h.s.ModelDir); err != nil {
		return err
	}
	family, err := families.Of(h.checkpoint.Config)
	if err != nil {
		return err
	}
	if h.text, err = text.Load(family.Text, h.s.ModelDir); err != nil {
		return err
	}
	if h.defaults, err = defaultsOf(h.checkpoint.Generation); err != nil {
		return err
	}
	config, err := family.Network.Parse(h.checkpoint.Config, h.checkpoint.Generation)
	if err != nil {
		return err
	}
	if h.s.WindowDefault {
		h.s.WindowTokens = min(h.s.WindowTokens, config.MaxPositions)
	}
	if h.s.WindowTokens > config.MaxPositions {
		return refuse("--window %d: the model's own window is %d", h.s.WindowTokens, config.MaxPositions)
	}
	for _, id := range config.EOS {
		if vocab := h.text.Tokenizer.VocabSize(); int(id) >= vocab {
			return &weights.MisfitError{File: "config.json or generation_config.json", Tensor: "eos_token_id",
				Found: fmt.Sprint(id),
				Wanted: fmt.Sprintf("one of the tokenizer's ids, [0,%d): rows above are never chosen, so no "+
					"reply would end", vocab)}
		}
	}
	if err := h.openDraft(config); err != nil {
		return err
	}
	h.bf16 = h.s.Operands == "bf16"
	if h.opened, err = h.s.openDevice(h.mappings(), h.bf16); err != nil {
		return err
	}
	if h.kv = h.chooseKV(h.s.KV); h.kv == device.KVQ8 && config.HeadDim%device.KVGroup != 0 {
		return refuse("--kv %s: this model's attention heads have %d dimensions, and 8 bit takes multiples of %d; "+
			"leave --kv out",
			h.s.KV, config.HeadDim, device.KVGroup)
	}
	options := model.Options{WindowTokens: h.s.WindowTokens, MaxSequences: h.s.Parallel, KVFormat: h.kv,
		Draft: h.opener().network}
	h.draftOptions(&options)
	if h.s.CacheMemoryBytes > 0 {
		h.extraPages = extraPages(model.PageBytes(h.device, config, h.kv, options.Draft), h.s.CacheMemoryBytes)
		options.ExtraPages = h.extraPages
	}
	if h.s.CacheMemoryBytes > 0 || h.s.draft().Most > 0 {
		options.TapeTokens = tapeTokens
	}
	n, err := h.loadWeights(options)
	if beyondF16(err) && h.s.Operands != "f16" {
		n, err = h.loadInBF16(options)
	}
	if errors.Is(err, model.ErrNoMTP) {
		return refuse("--draft %s: %v", h.s.Draft, err)
	}
	if misfit, ok := errors.AsType[*weights.MisfitError](err); ok && h.s.DraftDir != "" &&
		misfit.File == mtphead.FileName {
		return h.refuseDraft(h.s.DraftDir, err)
	}
	if err != nil {
		return h.explainRoom(err, options, config)
	}
	h.network = &network{Network: n, config: config, vocab: config.VocabSize, window: n.WindowTokens(),
		chunk:  n.ChunkTokens(),
		unload: h.unload,
		load:   func() (*model.Network, error) { return h.reload(options) }}
	h.network.gpu.now = h.gpuSeconds()
	h.key, err = h.keyOf()
	return err
}

// gpuSeconds reads the clock of the open GPU; nil on the CPU.
func (h *Host) gpuSeconds() func() float64 {
	if h.gpu == nil {
		return nil
	}
	return func() float64 {
		if h.gpu == nil {
			return 0 // loaded again, on the CPU
		}
		return h.gpu.GPUSeconds()
	}
}

// loadWeights loads the weights, on a GPU into memory before the first pass.
func (h *Host) loadWeights(options model.Options) (*model.Network, error) {
	n, err := model.Load(h.device, h.checkpoint, options)
	if err != nil {
		return nil, err
	}
	if err := h.loadDraft(n); err != nil {
		return nil, err
	}
	if err := h.ready(h.log); err != nil {
		return nil, err
	}
	return n, h.tryPrefill(n)
}

// loadInBF16 opens the device again in bf16, for weights whose activations do not fit into f16.
func (h *Host) loadInBF16(options model.Options) (n *model.Network, err error) {
	h.device.Close()
	h.bf16 = true
	if h.opened, err = h.s.openDevice(h.mappings(), true); err != nil {
		return nil, err
	}
	h.notes = append(h.notes, "activations of this model leave the range of f16, so prompts are multiplied in bf16, "+
		"which is less exact; --operands bf16 says so from the start")
	return h.loadWeights(options)
}

// reload loads the weights again after unload. Weights that changed meanwhile are refused: sizes, text side and the
// states on disk belong to the old ones.
func (h *Host) reload(options model.Options) (n *model.Network, err error) {
	defer func() {
		if err != nil {
			h.unload()
		}
	}()
	if h.checkpoint, err = weights.Open(h.s.ModelDir); err != nil {
		return nil, err
	}
	if err = h.openDraft(h.network.config); err != nil {
		return nil, err
	}
	if h.opened, err = h.s.openDevice(h.mappings(), h.bf16); err != nil {
		return nil, err
	}
	h.kv = h.chooseKV(h.s.KV)
	key, err := h.keyOf()
	if err != nil {
		return nil, err
	}
	if key != h.key {
		return nil, fmt.Errorf("the files in %s changed while the model was unloaded; start the server again",
			h.s.ModelDir)
	}
	return h.loadWeights(options)
}

// unload gives back what load took, the text side aside.
func (h *Host) unload() {
	if h.device != nil {
		h.device.Close()
	}
	if h.checkpoint != nil {
		h.checkpoint.Close()
	}
	if h.draftFiles != nil {
		h.draftFiles.Close()
	}
	h.opened, h.checkpoint, h.draftFiles, h.draft = opened{}, nil, nil, nil
}

// defaultsOf reads the sampling defaults of the model; without generation_config.json they are neutral.
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

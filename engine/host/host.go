// Package host opens a model with its settings and gives one value to serve from: weights, network, device, cache and
// queue.
//
//	Open (device -> weights -> cache -> queue) -> Run -> Close
//
// It links no GPU binding: the program brings an accelerator along. Refusals name the flag that would help, as settings
// are serve's flags.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"slipway/engine/api"
	"slipway/engine/api/turn"
	"slipway/engine/device"
	"slipway/engine/draft/dflash"
	"slipway/engine/memory"
	"slipway/engine/memory/disk"
	"slipway/engine/memory/keep"
	"slipway/engine/sample"
	"slipway/engine/serve"
	"slipway/engine/text"
	"slipway/engine/weights"
)

// LeastWindowTokens is the smallest window that is worth a server.
const LeastWindowTokens = 64

// Settings say which model is served and how. Flags are named after them.
type Settings struct {
	ModelDir string // folder of the checkpoint
	ModelID  string // name in the API
	Revision string // 40 hex digits of the weights' revision; empty: the files are the revision
	Version  string // of the program
	Profile  string // that these settings were made of; empty where unknown

	Device   string // "auto", "cpu", or the accelerator's name
	KV       string // format of keys and values; empty: the device's own
	Operands string // of prefill on a GPU: "f16", "bf16", or "auto", which is f16 where this model's activations fit

	// Draft names what proposes tokens, by the names of profiles.DraftNames; empty: nothing does.
	Draft string

	DraftTokens int    // proposed at a time, in [1, the kind's most]; 0: the kind's usual number
	DraftDir    string // folder of the draft; empty: the checkpoint's own head, or dflash2 beside or below the model
	DraftBits   int    // of the dflash2 draft's matrices: 4, or 16 as they are in the file; 0 is 4

	WindowTokens  int
	WindowDefault bool // WindowTokens is no wish: a smaller model gets its own window
	Parallel      int  // requests worked on at once
	Queue         int  // requests that may wait behind them

	CacheMemoryBytes    int64  // for restore points; 0: nothing is kept
	CacheDisk           string // folder of restore points; empty: none
	CacheDiskBytes      int64
	CacheDiskDailyBytes int64       // 0: no bound
	Normalize           []turn.Rule // of system messages; see ReadRules

	IdleUnload time.Duration // without a request, after which the weights' memory is given back; 0: never
	Address    netip.Addr    // that the API listens on

	Accelerator device.Accelerator      // nil: there is none
	Memory      func() serve.Memory     // asked of the system; nil: memory is never short
	KeepAwake   func() (release func()) // nil: the machine is never asked to stay awake
	Log         *slog.Logger            // never sees text of prompts or replies
}

// ReadRules reads the JSON of Settings.Normalize.
func ReadRules(raw []byte) ([]turn.Rule, error) { return turn.ReadRules(raw) }

// SettingError says that a setting cannot be honoured, and which one would work.
type SettingError struct{ Sentence string }

func (e *SettingError) Error() string { return e.Sentence }

func refuse(format string, args ...any) error { return &SettingError{fmt.Sprintf(format, args...)} }

// ModelError says that the model cannot be loaded, or not be served.
type ModelError struct {
	Sentence string
	Err      error // nil: its weights do not fit into what the GPU may use
}

func (e *ModelError) Error() string { return e.Sentence }
func (e *ModelError) Unwrap() error { return e.Err }

// Host is a model that is ready to serve.
type Host struct {
	s   Settings
	log *slog.Logger

	checkpoint *weights.Checkpoint // nil while the model is unloaded
	draftFiles *dflash.Checkpoint  // likewise; nil without a DFlash2 draft
	draft      *dflash.Network     // likewise
	opened                         // the device; nothing while the model is unloaded
	network    *network
	text       *text.Model
	defaults   sample.Params

	kv         device.KVFormat
	bf16       bool         // operands of prefill on the GPU
	key        memory.Key   // what states are computed under
	extraPages int          // of the network's pool, for restore points
	keeper     *keep.Keeper // nil: nothing is kept between requests
	disk       *disk.Store  // nil: not on disk

	engine  *serve.Engine
	metrics *api.Metrics
	running atomic.Bool
}

// Open loads the model and makes everything that serves it. Errors: *SettingError and *ModelError, after which nothing
// is held.
func Open(s Settings) (h *Host, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	h = &Host{s: s, log: s.Log}
	defer func() {
		if err != nil {
			h.Close(0)
			h = nil
		}
	}()
	if err := h.load(); err != nil {
		return h, h.explain("loaded", err)
	}
	if err := h.makeQueue(); err != nil {
		return h, h.explain("served", err)
	}
	return h, nil
}

// makeQueue makes the cache and the queue over the loaded network.
func (h *Host) makeQueue() (err error) {
	if err := h.openCache(); err != nil {
		return err
	}
	s := h.s
	h.metrics = api.NewMetrics(h.log, func() serve.Status { return h.engine.Status() }, s.Version, s.ModelID,
		s.Revision)
	h.engine, err = serve.New(h.network, serve.Options{
		Parallel: s.Parallel, Queue: s.Queue, VocabTokens: h.text.Tokenizer.VocabSize(),
		EndTokens: h.network.Config().EOS,
		Draft:     h.proposer(), DraftTokens: h.draftTokens(), Keeper: h.keeper,
		IdleAfter: s.IdleUnload, Memory: s.Memory, KeepAwake: s.KeepAwake,
		Now: time.Now, Log: h.log, OnEnd: h.metrics.OnEnd,
	})
	return err
}

// Check refuses settings that no model could be served with here.
func (s Settings) Check() error {
	if err := s.checkDevice(); err != nil {
		return err
	}
	if err := s.checkOperands(); err != nil {
		return err
	}
	if err := s.checkKV(); err != nil {
		return err
	}
	return s.checkDraft()
}

// explain adds the model to an error that is not a refusal with a sentence of its own.
func (h *Host) explain(verb string, err error) error {
	var setting *SettingError
	var room *ModelError
	if errors.As(err, &setting) || errors.As(err, &room) {
		return err
	}
	return &ModelError{fmt.Sprintf("the model in %s cannot be %s: %v", h.s.ModelDir, verb, err), err}
}

// Engine is the queue, for watching and draining.
func (h *Host) Engine() *serve.Engine { return h.engine }

// Notes are sentences about what differs from the settings, and why.
func (h *Host) Notes() []string { return h.notes }

// Key is what states of this run are computed under: model, device, numerics and formats.
func (h *Host) Key() memory.Key { return h.key }

// Run answers requests until ctx ends or a drain is complete; see [serve.Engine.Run]. Meanwhile it watches the
// machine's memory.
func (h *Host) Run(ctx context.Context) error {
	h.running.Store(true)
	defer h.running.Store(false)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if h.s.Memory != nil {
		go h.watchMemory(watching)
	}
	return h.engine.Run(ctx)
}

// Close writes what the disk cache still has within patience and gives everything back. Where Run has not returned the
// device stays, as a pass may be using it.
func (h *Host) Close(patience time.Duration) {
	h.closeCache(patience)
	if !h.running.Load() {
		h.unload()
	}
}

// memoryInterval is how often the system is asked: it takes seconds to write memory out, and asking takes microseconds.
const memoryInterval = time.Second

// watchMemory has points dropped when memory becomes short, once for each step down: they are made again meanwhile.
func (h *Host) watchMemory(ctx context.Context) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	last := serve.MemoryEnough
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m := h.s.Memory()
		if m.Level > last {
			h.log.Warn("the machine is short of memory", "critical", m.Level == serve.MemoryCritical, "free_bytes",
				m.FreeBytes, "of", m.TotalBytes)
			h.engine.DropPoints()
		}
		last = m.Level
	}
}

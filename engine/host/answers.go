package host

import (
	"cmp"

	"slipway/engine/api"
	"slipway/engine/device"
	"slipway/engine/memory"
	"slipway/wire"
)

// Answers completes the options of the API with the model's part.
func (h *Host) Answers(options api.Options) api.Options {
	options.Engine, options.Metrics, options.Keeper = h.engine, h.metrics, h.keeper
	options.Text = h.text
	options.Defaults, options.Normalize, options.Profile = h.defaults, h.s.Normalize, h.s.Profile
	options.Device, options.Numerics, options.KVFormat, options.PrefillPolicy = h.key.Device, h.key.Numerics,
		h.key.KVFormat, h.key.Policy.Name
	options.Draft = cmp.Or(h.s.Draft, "none")
	options.ShowSnippets = h.s.Address.IsLoopback()
	options.Memory = h.memory()
	if h.network.gpu.now != nil {
		options.GPU = h.network.gpu.total
	}
	if h.kv != device.KVNative {
		options.Approximations = append(options.Approximations, "keys and values in "+h.key.KVFormat)
	}
	if h.gpu != nil && h.bf16 {
		options.Approximations = append(options.Approximations, "operands of prefill in bf16")
	}
	return options
}

// memory tells what the model holds. Its sizes stay the same when it is loaded again.
func (h *Host) memory() func() wire.Memory {
	n := h.network
	held := n.MemoryBytes()
	var points int64
	if h.keeper != nil {
		points = h.keeper.Budget(memory.InMemory).TotalBytes
	}
	m := wire.Memory{
		WeightsBytes: held.Weights, ContextBytes: held.KVPages - int64(h.extraPages)*n.PageBytes() + held.States,
		WorkBytes: held.Work, PointsBudgetBytes: points,
	}
	return func() wire.Memory {
		m := m
		m.Loaded = !n.asleep.Load()
		return m
	}
}

package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"slipway/engine/memory"
	"slipway/engine/memory/keep"
	"slipway/engine/serve"
	"slipway/wire"
)

// Metrics counts requests for Prometheus and writes one log line for each. A scrape sees one moment: the prompt's
// tokens are the cached and the computed ones in every scrape.
type Metrics struct {
	log     *slog.Logger
	handler http.Handler
	status  func() serve.Status
	keeper  *keep.Keeper       // nil: nothing is kept between requests
	memory  func() wire.Memory // nil: unknown
	gpu     func() wire.GPU    // nil: there is none

	mu        sync.Mutex
	outcomes  map[serve.FinishReason]int
	refused   map[string]int
	usage     serve.Usage
	draftsOff int // requests whose drafting was switched off
	seconds   map[string]float64
	again     map[memory.Cause]int // tokens
}

// NewMetrics makes counters. status is read at each scrape; info labels the build.
func NewMetrics(log *slog.Logger, status func() serve.Status, version, model, revision string) *Metrics {
	m := &Metrics{log: log, status: status, outcomes: map[serve.FinishReason]int{}, refused: map[string]int{},
		seconds: map[string]float64{}, again: map[memory.Cause]int{}}
	for _, reason := range []serve.FinishReason{serve.FinishStop, serve.FinishLength, serve.FinishCancelled,
		serve.FinishError} {
		m.outcomes[reason] = 0
	}
	registry := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "slipway_build_info", Help: "Always 1; the labels say " +
		"what runs.",
		ConstLabels: prometheus.Labels{"version": version, "model": model, "revision": revision}})
	info.Set(1)
	registry.MustRegister(info, m)
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// OnEnd counts and logs a request that was accepted; it is the engine's hook.
func (m *Metrics) OnEnd(s serve.Summary) {
	m.mu.Lock()
	m.outcomes[s.Reason]++
	m.usage.CachedTokens += s.Usage.CachedTokens
	m.usage.ComputedTokens += s.Usage.ComputedTokens
	m.usage.CompletionTokens += s.Usage.CompletionTokens
	m.usage.Drafts.Add(s.Usage.Drafts)
	if s.Usage.Drafts.Off != "" {
		m.draftsOff++
	}
	m.seconds["tokenize"] += s.Times.Tokenize.Seconds()
	m.seconds["queue"] += s.Times.Queue.Seconds()
	m.seconds["prefill"] += s.Times.Prefill.Seconds()
	m.seconds["decode"] += s.Times.Decode.Seconds()
	if r := s.Report; r != nil && r.Again > 0 && r.Cause != memory.CauseNone {
		m.again[r.Cause] += r.Again
	}
	m.mu.Unlock()

	level, attrs := slog.LevelInfo, []any{
		"request", s.ID, "outcome", string(s.Reason), "length_tokens", s.Length,
		"prompt_tokens", s.Usage.PromptTokens(), "cached_tokens", s.Usage.CachedTokens, "computed_tokens",
		s.Usage.ComputedTokens,
		"completion_tokens", s.Usage.CompletionTokens,
		"tokenize", s.Times.Tokenize, "queue", s.Times.Queue, "prefill", s.Times.Prefill, "decode", s.Times.Decode,
	}
	attrs = append(attrs, reasons(s.Report)...)
	if s.Reason == serve.FinishError {
		level = slog.LevelError
		attrs = append(attrs, "error", s.Err.Error())
	}
	m.log.Log(context.Background(), level, "request", attrs...)
}

// reasons say, without any of its text, why a prompt cost what it did.
func reasons(e *keep.Report) []any {
	if e == nil {
		return nil
	}
	attrs := []any{"known_tokens", e.Common, "again_tokens", e.Again}
	if e.Cause != memory.CauseNone {
		attrs = append(attrs, "again_because", string(e.Cause))
	}
	if len(e.Keys) > 0 {
		attrs = append(attrs, "other_key", strings.Join(e.Keys, "; "))
	}
	if e.Difference != nil {
		attrs = append(attrs, "parted_at_token", e.Difference.At)
	}
	return attrs
}

func (m *Metrics) refuse(code string) {
	m.mu.Lock()
	m.refused[code]++
	m.mu.Unlock()
}

var (
	requestsDesc = desc("slipway_requests_total", "Requests that were accepted and have ended, by how they ended.",
		"outcome")
	refusedDesc    = desc("slipway_refused_total", "Requests answered with an error, by its code.", "code")
	promptDesc     = desc(wire.MetricPromptTokens, "Prompt tokens dealt with: cached plus computed.")
	cachedDesc     = desc(wire.MetricCachedTokens, "Prompt tokens restored instead of computed.")
	computedDesc   = desc(wire.MetricComputedTokens, "Prompt tokens that went through the network.")
	completionDesc = desc(wire.MetricCompletionTokens, "Tokens of replies, end tokens included.")
	draftedDesc    = desc("slipway_drafted_tokens_total", "Tokens that a draft proposed, by place in the proposal.",
		"position")
	acceptedDesc = desc("slipway_accepted_tokens_total", "Proposed tokens that replies took, by place in "+
		"the proposal.", "position")
	verifiedDesc = desc("slipway_verified_passes_total", "Shares of passes that verified a proposal; each gave "+
		"its reply one token beside the accepted ones.")
	draftTimeDesc = desc("slipway_draft_seconds_total", "Time in the draft and in passes that verify, by step.",
		"step")
	draftOffDesc = desc("slipway_draft_off_total", "Requests for which drafting was switched off because it "+
		"made them slower.")
	phaseDesc      = desc("slipway_phase_seconds_total", "Wall clock of requests, by phase.", "phase")
	gpuSecondsDesc = desc("slipway_gpu_seconds_total", "Time that the GPU worked on passes, by its own "+
		"clock, by phase.", "phase")
	gpuPassesDesc = desc("slipway_gpu_passes_total", "Passes that the GPU ran, by phase.", "phase")
	againDesc     = desc("slipway_computed_again_tokens_total", "Prompt tokens that had been processed before "+
		"and were computed again, by why.", "because")
	readyDesc = desc("slipway_ready", "1 while requests are taken, 0 while the server stops.")
	heldDesc  = desc("slipway_model_memory_bytes", "What the model holds at most, pools counted full: "+
		"weights, context (KV and states), points (restore points), work.", "part")
	loadedDesc = desc("slipway_model_loaded", "0 while the model's memory is given back until the next "+
		"request, else 1.")
	activeDesc    = desc("slipway_active_requests", "Requests in prefill or decode.")
	cacheHitsDesc = desc("slipway_cache_prompts_total", "Prompts by where their restore point came from: memory, "+
		"disk, none.", "from")
	cachePointsDesc = desc("slipway_cache_points", "Restore points held.", "tier")
	cacheBytesDesc  = desc("slipway_cache_bytes", "Bytes that restore points take, pages that they share "+
		"counted once.", "tier")
	cacheSavedDesc   = desc("slipway_cache_saved_total", "Restore points saved.")
	cacheEvictedDesc = desc("slipway_cache_evicted_total", "Restore points that left memory for others.")
	cacheRefusedDesc = desc("slipway_cache_refused_total", "Restore points that found no room.")
	cacheDamagedDesc = desc("slipway_cache_damaged_total", "Files of the disk cache dropped because they were torn "+
		"or flipped.")
	cacheWrittenDesc = desc("slipway_cache_disk_written_bytes_total", "Bytes written to the disk cache.")

	queuedDesc = desc("slipway_queued_requests", "Requests waiting for their turn.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, refusedDesc, promptDesc, cachedDesc, computedDesc,
		completionDesc,
		draftedDesc, acceptedDesc, verifiedDesc, draftTimeDesc, draftOffDesc, phaseDesc, gpuSecondsDesc, gpuPassesDesc,
		againDesc, readyDesc, heldDesc, loadedDesc, activeDesc, queuedDesc,
		cacheHitsDesc, cachePointsDesc, cacheBytesDesc, cacheSavedDesc, cacheEvictedDesc, cacheRefusedDesc,
		cacheDamagedDesc, cacheWrittenDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for reason, n := range m.outcomes {
		counter(requestsDesc, float64(n), string(reason))
	}
	for code, n := range m.refused {
		counter(refusedDesc, float64(n), code)
	}
	counter(promptDesc, float64(m.usage.PromptTokens()))
	counter(cachedDesc, float64(m.usage.CachedTokens))
	counter(computedDesc, float64(m.usage.ComputedTokens))
	counter(completionDesc, float64(m.usage.CompletionTokens))
	d := &m.usage.Drafts
	for i, p := range d.At {
		if p.Drafted > 0 {
			counter(draftedDesc, float64(p.Drafted), strconv.Itoa(i+1))
			counter(acceptedDesc, float64(p.Accepted), strconv.Itoa(i+1))
		}
	}
	counter(verifiedDesc, float64(d.Passes))
	counter(draftTimeDesc, d.Propose.Seconds(), "draft")
	counter(draftTimeDesc, d.Verify.Seconds(), "verify")
	counter(draftOffDesc, float64(m.draftsOff))
	for phase, seconds := range m.seconds {
		counter(phaseDesc, seconds, phase)
	}
	for because, tokens := range m.again {
		counter(againDesc, float64(tokens), string(because))
	}
	if m.gpu != nil {
		g := m.gpu()
		for phase, p := range map[string]wire.GPUPhase{"prefill": g.Prefill, "decode": g.Decode} {
			counter(gpuSecondsDesc, p.Seconds, phase)
			counter(gpuPassesDesc, float64(p.Passes), phase)
		}
	}
	if m.keeper != nil {
		c := m.keeper.Counters()
		counter(cacheHitsDesc, float64(c.Hits-c.FromDisk), "memory")
		counter(cacheHitsDesc, float64(c.FromDisk), "disk")
		counter(cacheHitsDesc, float64(c.Misses), "none")
		counter(cacheSavedDesc, float64(c.Saved))
		counter(cacheEvictedDesc, float64(c.Evicted))
		counter(cacheRefusedDesc, float64(c.Refused))
		counter(cacheDamagedDesc, float64(c.Damaged))
		counter(cacheWrittenDesc, float64(c.WrittenBytes))
		for tier, name := range map[memory.Tier]string{memory.InMemory: "memory", memory.OnDisk: "disk"} {
			u := m.keeper.Usage(tier)
			to <- prometheus.MustNewConstMetric(cachePointsDesc, prometheus.GaugeValue, float64(u.Points), name)
			to <- prometheus.MustNewConstMetric(cacheBytesDesc, prometheus.GaugeValue, float64(u.TotalBytes), name)
		}
	}
	status := m.status()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if m.memory != nil {
		held := m.memory()
		gauge(heldDesc, float64(held.WeightsBytes), "weights")
		gauge(heldDesc, float64(held.ContextBytes), "context")
		gauge(heldDesc, float64(held.PointsBudgetBytes), "points")
		gauge(heldDesc, float64(held.WorkBytes), "work")
		gauge(loadedDesc, one(held.Loaded))
	}
	gauge(readyDesc, one(status.Running && !status.Draining))
	to <- prometheus.MustNewConstMetric(activeDesc, prometheus.GaugeValue, float64(status.Active))
	to <- prometheus.MustNewConstMetric(queuedDesc, prometheus.GaugeValue, float64(status.Queued))
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

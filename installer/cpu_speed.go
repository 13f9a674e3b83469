package installer

import "slipway/manifests"

// cpuWeightsPerSecond is how many bytes of 4-bit weights the CPU device multiplies in a second with one row:
// BenchmarkGEMV300MB, rows=1, on 2 cores of an AMD EPYC with AVX2, November 2026: 4.3 GB/s.
const cpuWeightsPerSecond = 4_300_000_000

// cpuTokensPerSecond is an estimate of how fast a model answers on a processor: every weight is read once a token. It
// is no part of a plan.
func cpuTokensPerSecond(m manifests.Manifest) float64 {
	return cpuWeightsPerSecond / float64(m.Geometry.WeightsBytes)
}

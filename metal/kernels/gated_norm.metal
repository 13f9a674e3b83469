// Gated norm: dst = RMS(o per head, eps)·weight·silu(z), after the delta rule. dst may be o.
//
// dst, o, z f32 [heads in all rows, dim]; weight f32 [dim].
// gated_norm        a simdgroup owns a head; a threadgroup of 128 owns four. No barriers: a lane writes what only it read.
// Plain variant: gated_norm_plain.metal.
// Accumulation f32. Reference: device/cpu GatedNorm; tolerance 1e-4 of the row's largest value.

struct GatedNormParams {
  uint heads;  // rows·heads of a row
  uint dim;
  float eps;
};

kernel void gated_norm(constant GatedNormParams &p [[buffer(0)]],
                       device float *dst [[buffer(1)]],
                       device const float *o [[buffer(2)]],
                       device const float *z [[buffer(3)]],
                       device const float *weight [[buffer(4)]],
                       uint tile [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint head = tile * 4 + simdgroup;
  if (head >= p.heads) return;
  const ulong at = ulong(head) * p.dim;
  float sum = 0.0f;
  for (uint i = lane; i < p.dim; i += 32) sum += o[at + i] * o[at + i];
  sum = simd_sum(sum);
  const float scale = precise::rsqrt(sum / float(p.dim) + p.eps);
  for (uint i = lane; i < p.dim; i += 32) dst[at + i] = o[at + i] * scale * weight[i] * silu(z[at + i]);
}

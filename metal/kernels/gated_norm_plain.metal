// Gated norm, plain: as gated_norm.metal, a thread a head. Tolerance as there.

struct GatedNormParams {
  uint heads;  // rows·heads of a row
  uint dim;
  float eps;
};

kernel void gated_norm_plain(constant GatedNormParams &p [[buffer(0)]],
                             device float *dst [[buffer(1)]],
                             device const float *o [[buffer(2)]],
                             device const float *z [[buffer(3)]],
                             device const float *weight [[buffer(4)]],
                             uint head [[thread_position_in_grid]]) {
  if (head >= p.heads) return;
  const ulong at = ulong(head) * p.dim;
  float sum = 0.0f;
  for (uint i = 0; i < p.dim; i++) sum += o[at + i] * o[at + i];
  const float scale = precise::rsqrt(sum / float(p.dim) + p.eps);
  for (uint i = 0; i < p.dim; i++) dst[at + i] = o[at + i] * scale * weight[i] * silu(z[at + i]);
}

// Causal depthwise convolution of 4 taps with silu: dst[t, c] = silu(Σ_j weight[j, c]·x[t-3+j, c]), first operation of the gated
// delta net after its projections. Rows before the segment come from the tail of its state, which then holds its last 3 rows.
//
// x, dst f32 [rows of the segment, channels]; weight f32 [4, channels], oldest tap first; tail f32 [3, channels], oldest first.
// A thread owns a channel over the whole segment and slides three values in registers: it alone reads and writes its tail,
// so no barrier is needed. One dispatch a segment. Its own plain variant.
// Reference: device/cpu Conv; tolerance 1e-4 of the row.

struct ConvParams {
  uint rows;
  uint channels;
};

kernel void conv(constant ConvParams &p [[buffer(0)]],
                 device float *dst [[buffer(1)]],
                 device const float *x [[buffer(2)]],
                 device const float *weight [[buffer(3)]],
                 device float *tail [[buffer(4)]],
                 uint c [[thread_position_in_grid]]) {
  if (c >= p.channels) return;
  const uint n = p.channels;
  x += c;
  dst += c;
  tail += c;
  const float w0 = weight[c];
  const float w1 = weight[n + c];
  const float w2 = weight[2 * n + c];
  const float w3 = weight[3 * n + c];
  float x0 = tail[0];
  float x1 = tail[n];
  float x2 = tail[2 * n];
  for (uint t = 0; t < p.rows; t++) {
    const float x3 = x[ulong(t) * n];
    dst[ulong(t) * n] = silu(w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3);
    x0 = x1;
    x1 = x2;
    x2 = x3;
  }
  tail[0] = x0;
  tail[n] = x1;
  tail[2 * n] = x2;
}

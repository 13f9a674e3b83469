// What stands before the delta rule, in one dispatch a segment: the causal depthwise convolution of 4 taps with silu, the gates, and what
// a tape keeps of both.
//   dst[t, c] = silu(Σ_j weight[j, c]·x[t-3+j, c]); rows before the segment come from the tail of its state, which then holds its last 3
//   a = exp(-exp(a_log)·softplus(a + dt_bias)), the decay α; b = sigmoid(b), the step β; in place
//
// x, dst f32 [rows of the segment, channels]; weight f32 [4, channels], oldest tap first; tail f32 [3, channels], oldest first;
// a, b f32 [rows, heads]; a_log, dt_bias f32 [heads]. tape_x, tape_qkv, tape_a, tape_b: rows as of x, dst, a and b, lying densely.
// A thread owns a channel over the whole segment, and slides three values in registers, or behind the channels a head: it alone reads and
// writes its tail, so no barrier is needed. channels or heads may be 0. Its own plain variant.
// Before delta_step, so that its loop over tokens has no exponential in it.
// Reference: device/cpu Conv and DeltaRule (gates in float64), and its tape, which keeps normed keys instead; tolerance 1e-4 of the row;
// what a tape keeps is exact.

struct DeltaInputParams {
  uint rows;
  uint channels;
  uint heads;
  uint convolve;    // 0: dst holds the convolution already
  uint keep_input;  // 1: x goes onto the tape
  uint keep_rest;   // 1: dst, a and b do
};

// softplus is log(1+e^x), linear above 20. Below -8, log1p(y) is y - y²/2 to f32's last place; above, log is.
inline float softplus(float x) {
  if (x > 20.0f) return x;
  const float y = precise::exp(x);
  return x < -8.0f ? y - 0.5f * y * y : precise::log(1.0f + y);
}

kernel void delta_input(constant DeltaInputParams &p [[buffer(0)]],
                        device float *dst [[buffer(1)]],
                        device const float *x [[buffer(2)]],
                        device const float *weight [[buffer(3)]],
                        device float *tail [[buffer(4)]],
                        device float *a [[buffer(5)]],
                        device float *b [[buffer(6)]],
                        device const float *a_log [[buffer(7)]],
                        device const float *dt_bias [[buffer(8)]],
                        device float *tape_x [[buffer(9)]],
                        device float *tape_qkv [[buffer(10)]],
                        device float *tape_a [[buffer(11)]],
                        device float *tape_b [[buffer(12)]],
                        uint c [[thread_position_in_grid]]) {
  const uint n = p.channels;
  if (c >= n) {
    const uint head = c - n;
    if (head >= p.heads) return;
    const float rate = -precise::exp(a_log[head]);
    for (uint t = 0; t < p.rows; t++) {
      const ulong at = ulong(t) * p.heads + head;
      const float alpha = precise::exp(rate * softplus(a[at] + dt_bias[head]));
      const float beta = sigmoid(b[at]);
      a[at] = alpha;
      b[at] = beta;
      if (p.keep_rest != 0) {
        tape_a[at] = alpha;
        tape_b[at] = beta;
      }
    }
    return;
  }
  if (p.convolve == 0) {
    for (uint t = 0; t < p.rows; t++) tape_qkv[ulong(t) * n + c] = dst[ulong(t) * n + c];
    return;
  }
  const float w0 = weight[c];
  const float w1 = weight[n + c];
  const float w2 = weight[2 * n + c];
  const float w3 = weight[3 * n + c];
  float x0 = tail[c];
  float x1 = tail[n + c];
  float x2 = tail[2 * n + c];
  for (uint t = 0; t < p.rows; t++) {
    const ulong at = ulong(t) * n + c;
    const float x3 = x[at];
    const float y = silu(w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3);
    dst[at] = y;
    if (p.keep_input != 0) tape_x[at] = x3;
    if (p.keep_rest != 0) tape_qkv[at] = y;
    x0 = x1;
    x1 = x2;
    x2 = x3;
  }
  tail[c] = x0;
  tail[n + c] = x1;
  tail[2 * n + c] = x2;
}

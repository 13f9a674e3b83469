// Tape of a recurrent state: keeps what short segments did, so that a replay by delta_step gives the same bits.
//
// tape_conv   to, from f32 [count]: the rows before the convolution, beside conv.
// tape_delta  qkv f32 [qkv_count] after the convolution, alpha and beta f32 [gate_count] after delta_gates, beside delta_step.
// Rows of a segment lie densely on both sides. A thread owns an element. No barriers. Exact. Their own plain variants.
// Reference: device/cpu's tape, which keeps normed keys instead: the kernel here norms them again.

struct TapeParams {
  uint qkv_count;
  uint gate_count;  // at most qkv_count
};

kernel void tape_conv(constant TapeParams &p [[buffer(0)]],
                      device float *to [[buffer(1)]],
                      device const float *from [[buffer(2)]],
                      uint i [[thread_position_in_grid]]) {
  if (i < p.qkv_count) to[i] = from[i];
}

kernel void tape_delta(constant TapeParams &p [[buffer(0)]],
                       device float *qkv_to [[buffer(1)]],
                       device const float *qkv [[buffer(2)]],
                       device float *alpha_to [[buffer(3)]],
                       device const float *alpha [[buffer(4)]],
                       device float *beta_to [[buffer(5)]],
                       device const float *beta [[buffer(6)]],
                       uint i [[thread_position_in_grid]]) {
  if (i < p.qkv_count) qkv_to[i] = qkv[i];
  if (i < p.gate_count) {
    alpha_to[i] = alpha[i];
    beta_to[i] = beta[i];
  }
}

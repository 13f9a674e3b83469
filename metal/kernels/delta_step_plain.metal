// Gated delta rule, plain: as delta_step.metal, a thread a row of S, which stays in device memory; any Dk. Tolerance as there.

struct DeltaStepParams {
  uint rows;
  uint key_heads;
  uint value_heads;
  uint key_dim;
  uint value_dim;
};

kernel void delta_step_plain(constant DeltaStepParams &p [[buffer(0)]],
                             device float *dst [[buffer(1)]],
                             device const float *qkv [[buffer(2)]],
                             device const float *alpha [[buffer(3)]],
                             device const float *beta [[buffer(4)]],
                             device float *state [[buffer(5)]],
                             uint2 at [[thread_position_in_grid]]) {
  const uint row = at.x;
  const uint head = at.y;
  if (row >= p.value_dim || head >= p.value_heads) return;
  const uint dk = p.key_dim;
  const uint key = head / (p.value_heads / p.key_heads);
  const uint width = 2 * p.key_heads * dk + p.value_heads * p.value_dim;
  device float *s = state + (ulong(head) * p.value_dim + row) * dk;
  const float root = precise::rsqrt(float(dk));
  for (uint t = 0; t < p.rows; t++) {
    device const float *q = qkv + ulong(t) * width + key * dk;
    device const float *k = q + p.key_heads * dk;
    const float v = qkv[ulong(t) * width + 2 * p.key_heads * dk + head * p.value_dim + row];
    const float a = alpha[t * p.value_heads + head];
    float qq = 0.0f;
    float kk = 0.0f;
    float sk = 0.0f;
    for (uint i = 0; i < dk; i++) {
      s[i] *= a;
      qq += q[i] * q[i];
      kk += k[i] * k[i];
      sk += s[i] * k[i];
    }
    const float norm = precise::rsqrt(kk + 1e-6f);
    const float delta = beta[t * p.value_heads + head] * (v - sk * norm);
    float o = 0.0f;
    for (uint i = 0; i < dk; i++) {
      s[i] += delta * (k[i] * norm);
      o += s[i] * q[i];
    }
    dst[(ulong(t) * p.value_heads + head) * p.value_dim + row] = o * (precise::rsqrt(qq + 1e-6f) * root);
  }
}

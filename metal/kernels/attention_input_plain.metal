// Attention input, plain: as attention_input.metal, a thread a head of a row. Tolerance as there.

struct AttentionInputParams {
  uint rows;
  uint heads;     // H
  uint kv_heads;  // Hkv
  uint dim;       // D, at most 256
  uint pairs;     // rotated pairs (i, i+pairs)
  float eps;
};

constant constexpr uint PAGE = 256;  // positions

kernel void attention_input_plain(constant AttentionInputParams &p [[buffer(0)]],
                                  device float *q [[buffer(1)]],
                                  device const float *q_gate [[buffer(2)]],
                                  device const float *k [[buffer(3)]],
                                  device const float *v [[buffer(4)]],
                                  device const float *q_norm [[buffer(5)]],
                                  device const float *k_norm [[buffer(6)]],
                                  device const float *table [[buffer(7)]],
                                  device const int *slots [[buffer(8)]],
                                  device half *keys [[buffer(9)]],
                                  device half *values [[buffer(10)]],
                                  device atomic_uint *status [[buffer(11)]],
                                  uint2 at [[thread_position_in_grid]]) {
  const uint row = at.y;
  const uint d = p.dim;
  if (at.x >= p.heads + 2 * p.kv_heads || row >= p.rows) return;
  const bool query = at.x < p.heads;
  const uint head = query ? at.x : (at.x - p.heads) % p.kv_heads;
  const uint slot = uint(slots[row]);
  const ulong place = ((ulong(slot / PAGE) * p.kv_heads + head) * PAGE + slot % PAGE) * d;
  bool beyond = false;
  if (at.x >= p.heads + p.kv_heads) {
    v += (ulong(row) * p.kv_heads + head) * d;
    for (uint i = 0; i < d; i++) {
      values[place + i] = half(v[i]);
      beyond = beyond || beyond_half(v[i]);
    }
    if (beyond) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
    return;
  }
  device const float *x = query ? q_gate + (ulong(row) * p.heads + head) * 2 * d : k + (ulong(row) * p.kv_heads + head) * d;
  device const float *weight = query ? q_norm : k_norm;
  table += ulong(row) * 2 * p.pairs;
  float sum = 0.0f;
  for (uint i = 0; i < d; i++) sum += x[i] * x[i];
  const float scale = precise::rsqrt(sum / float(d) + p.eps);
  for (uint i = 0; i < d; i++) {
    float y = x[i] * scale * weight[i];
    if (i < p.pairs) y = y * table[i] - x[i + p.pairs] * scale * weight[i + p.pairs] * table[p.pairs + i];
    else if (i < 2 * p.pairs) y = y * table[i - p.pairs] + x[i - p.pairs] * scale * weight[i - p.pairs] * table[i];
    if (query) {
      q[(ulong(row) * p.heads + head) * d + i] = y;
    } else {
      keys[place + i] = half(y);
      beyond = beyond || beyond_half(y);
    }
  }
  if (beyond) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
}

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
constant uint Q8 [[function_constant(0)]];  // 1: pages are q8, D a multiple of 64

// keep stores a head. Returns whether a value is beyond f16.
inline bool keep(thread const float *y, device uchar *page, uint heads, uint d, uint head, uint position) {
  const ulong place = (ulong(head) * PAGE + position) * d;
  bool beyond = false;
  for (uint i = 0; i < d; i++) {
    beyond = beyond || beyond_half(y[i]);
    if (Q8 == 0) ((device half *)page)[place + i] = half(y[i]);
  }
  if (Q8 == 0) return beyond;
  device uint *words = (device uint *)(page + kv_words(heads, d, head, position));
  for (uint g = 0; g < d / KV_GROUP; g++) {
    float low = y[g * KV_GROUP];
    float high = low;
    bool finite = true;
    for (uint i = g * KV_GROUP; i < (g + 1) * KV_GROUP; i++) {
      low = min(low, y[i]);
      high = max(high, y[i]);
      finite = finite && isfinite(y[i]);
    }
    words[g] = kv_word(low, high, finite);
    for (uint i = g * KV_GROUP; i < (g + 1) * KV_GROUP; i++) page[place + i] = kv_code(y[i], words[g]);
  }
  return beyond;
}

kernel void attention_input_plain(constant AttentionInputParams &p [[buffer(0)]],
                                  device float *q [[buffer(1)]],
                                  device const float *q_gate [[buffer(2)]],
                                  device const float *k [[buffer(3)]],
                                  device const float *v [[buffer(4)]],
                                  device const float *q_norm [[buffer(5)]],
                                  device const float *k_norm [[buffer(6)]],
                                  device const float *table [[buffer(7)]],
                                  device const int *slots [[buffer(8)]],
                                  device uchar *keys [[buffer(9)]],
                                  device uchar *values [[buffer(10)]],
                                  device atomic_uint *status [[buffer(11)]],
                                  uint2 at [[thread_position_in_grid]]) {
  const uint row = at.y;
  const uint d = p.dim;
  if (at.x >= p.heads + 2 * p.kv_heads || row >= p.rows) return;
  const bool query = at.x < p.heads;
  const uint head = query ? at.x : (at.x - p.heads) % p.kv_heads;
  const uint slot = uint(slots[row]);
  device uchar *page = (at.x >= p.heads + p.kv_heads ? values : keys) + ulong(slot / PAGE) * kv_page_bytes(p.kv_heads, d, Q8 != 0);
  const uint position = slot % PAGE;
  float y[PAGE];
  if (at.x >= p.heads + p.kv_heads) {
    for (uint i = 0; i < d; i++) y[i] = v[(ulong(row) * p.kv_heads + head) * d + i];
    if (keep(y, page, p.kv_heads, d, head, position)) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
    return;
  }
  device const float *x = query ? q_gate + (ulong(row) * p.heads + head) * 2 * d : k + (ulong(row) * p.kv_heads + head) * d;
  device const float *weight = query ? q_norm : k_norm;
  table += ulong(row) * 2 * p.pairs;
  float sum = 0.0f;
  for (uint i = 0; i < d; i++) sum += x[i] * x[i];
  const float scale = precise::rsqrt(sum / float(d) + p.eps);
  for (uint i = 0; i < d; i++) {
    y[i] = x[i] * scale * weight[i];
    if (i < p.pairs) y[i] = y[i] * table[i] - x[i + p.pairs] * scale * weight[i + p.pairs] * table[p.pairs + i];
    else if (i < 2 * p.pairs) y[i] = y[i] * table[i - p.pairs] + x[i - p.pairs] * scale * weight[i - p.pairs] * table[i];
    if (query) q[(ulong(row) * p.heads + head) * d + i] = y[i];
  }
  if (query) return;
  if (keep(y, page, p.kv_heads, d, head, position)) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
}

// Attention input: norms and rotates the queries (first half of each head of q_gate) into q and the keys into the pages, and stores
// the values there.
//
// q f32 [rows, H·D]; q_gate f32 [rows, H·2·D]; k, v f32 [rows, Hkv·D]; q_norm, k_norm f32 [D]; table f32 [rows, 2·pairs] cos | sin;
// slots i32 [rows]: page·256 + offset; keys, values f16 [pages, Hkv, 256, D] of one layer.
// attention_input        a simdgroup owns a head of a row: x over H query heads, Hkv keys, Hkv values; y the rows. The normed head lies
//                        in threadgroup memory, one barrier, then every lane rotates with its partner's element.
// Plain variant: attention_input_plain.metal.
// Accumulation f32; keys and values are rounded to f16. A finite one beyond it sets STATUS_RANGE.
// Reference: device/cpu AttentionInput; tolerance 1e-4 (q), one unit of f16 (pages).

struct AttentionInputParams {
  uint rows;
  uint heads;     // H
  uint kv_heads;  // Hkv
  uint dim;       // D, at most 256
  uint pairs;     // rotated pairs (i, i+pairs)
  float eps;
};

constant constexpr uint PAGE = 256;  // positions

kernel void attention_input(constant AttentionInputParams &p [[buffer(0)]],
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
                            uint2 at [[threadgroup_position_in_grid]],
                            uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float normed[PAGE];
  const uint row = at.y;
  const uint d = p.dim;
  const bool query = at.x < p.heads;
  const uint head = query ? at.x : (at.x - p.heads) % p.kv_heads;
  const uint slot = uint(slots[row]);
  const ulong place = ((ulong(slot / PAGE) * p.kv_heads + head) * PAGE + slot % PAGE) * d;
  bool beyond = false;
  if (at.x >= p.heads + p.kv_heads) {
    v += (ulong(row) * p.kv_heads + head) * d;
    for (uint i = lane; i < d; i += 32) {
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
  for (uint i = lane; i < d; i += 32) sum += x[i] * x[i];
  sum = simd_sum(sum);
  const float scale = precise::rsqrt(sum / float(d) + p.eps);
  for (uint i = lane; i < d; i += 32) normed[i] = x[i] * scale * weight[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lane; i < d; i += 32) {
    float y = normed[i];
    if (i < p.pairs) y = y * table[i] - normed[i + p.pairs] * table[p.pairs + i];
    else if (i < 2 * p.pairs) y = y * table[i - p.pairs] + normed[i - p.pairs] * table[i];
    if (query) {
      q[(ulong(row) * p.heads + head) * d + i] = y;
    } else {
      keys[place + i] = half(y);
      beyond = beyond || beyond_half(y);
    }
  }
  if (beyond) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
}

// Attention input: norms and rotates the queries (first half of each head of q_gate) into q and the keys into the pages, and stores
// the values there.
//
// q f32 [rows, H·D]; q_gate f32 [rows, H·2·D]; k, v f32 [rows, Hkv·D]; q_norm, k_norm f32 [D]; table f32 [rows, 2·pairs] cos | sin;
// slots i32 [rows]: page·256 + offset; keys, values: pages of one layer (prelude.metal).
// attention_input        a simdgroup owns a head of a row: x over H query heads, Hkv keys, Hkv values; y the rows. The normed head lies
//                        in threadgroup memory, one barrier, then every lane rotates with its partner's element. Of a group of
//                        64 dimensions of q8 a lane holds two.
// Plain variant: attention_input_plain.metal.
// Accumulation f32; keys and values are rounded to f16 or q8. A finite one beyond f16 sets STATUS_RANGE: prefill multiplies in f16.
// Reference: device/cpu AttentionInput; tolerance 1e-4 (q), one unit of f16 or one code (pages).

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

// keep stores values i, i+32, i+64, … of a head, of which a lane has those that begin with its number.
inline bool keep(thread const float *y, device uchar *page, uint heads, uint d, uint head, uint position, uint lane) {
  const ulong place = (ulong(head) * PAGE + position) * d;
  bool beyond = false;
  for (uint i = lane, n = 0; i < d; i += 32, n++) beyond = beyond || beyond_half(y[n]);
  if (Q8 == 0) {
    for (uint i = lane, n = 0; i < d; i += 32, n++) ((device half *)page)[place + i] = half(y[n]);
    return beyond;
  }
  device uint *words = (device uint *)(page + kv_words(heads, d, head, position));
  for (uint g = 0; g < d / KV_GROUP; g++) {
    const float y0 = y[2 * g];
    const float y1 = y[2 * g + 1];
    const uint spoilt = simd_or(isfinite(y0) && isfinite(y1) ? 0u : 1u);
    const uint word = kv_word(-simd_max(max(-y0, -y1)), simd_max(max(y0, y1)), spoilt == 0);
    if (lane == 0) words[g] = word;
    page[place + g * KV_GROUP + lane] = kv_code(y0, word);
    page[place + g * KV_GROUP + 32 + lane] = kv_code(y1, word);
  }
  return beyond;
}

kernel void attention_input(constant AttentionInputParams &p [[buffer(0)]],
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
                            uint2 at [[threadgroup_position_in_grid]],
                            uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float normed[PAGE];
  const uint row = at.y;
  const uint d = p.dim;
  const bool query = at.x < p.heads;
  const uint head = query ? at.x : (at.x - p.heads) % p.kv_heads;
  const uint slot = uint(slots[row]);
  device uchar *page = (at.x >= p.heads + p.kv_heads ? values : keys) + ulong(slot / PAGE) * kv_page_bytes(p.kv_heads, d, Q8 != 0);
  const uint position = slot % PAGE;
  float y[PAGE / 32];
  if (at.x >= p.heads + p.kv_heads) {
    v += (ulong(row) * p.kv_heads + head) * d;
    for (uint i = lane, n = 0; i < d; i += 32, n++) y[n] = v[i];
    if (keep(y, page, p.kv_heads, d, head, position, lane)) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
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
  for (uint i = lane, n = 0; i < d; i += 32, n++) {
    y[n] = normed[i];
    if (i < p.pairs) y[n] = y[n] * table[i] - normed[i + p.pairs] * table[p.pairs + i];
    else if (i < 2 * p.pairs) y[n] = y[n] * table[i - p.pairs] + normed[i - p.pairs] * table[i];
    if (query) q[(ulong(row) * p.heads + head) * d + i] = y[n];
  }
  if (query) return;
  if (keep(y, page, p.kv_heads, d, head, position, lane)) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
}

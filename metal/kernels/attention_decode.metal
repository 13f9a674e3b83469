// Attention for 1 to 8 rows over long contexts, split along the keys: dst = softmax(q·kᵀ·scale)·v ⊙ sigmoid(gate).
//
// q, q_gate, keys, values, pages as in attention_plain.metal. partial f32 [rows, H, splits, D+2]: a maximum, a sum, D weighted values.
// attention_decode_d64, _d128, _d256  grid: splits × heads × rows. A threadgroup of 128 owns one split; its simdgroups take four keys
//                                     of every 16 in turn, a lane D/32 dimensions. They meet in threadgroup memory: one barrier.
//                                     Threadgroup memory: 4·(D+2)·4 B, 4,128 B at D 256.
// attention_combine                   grid: heads × rows, a thread a dimension. Merges the splits and applies the gate. No barriers.
// Keys that the policy hides are not read. Accumulation f32. Reference: device/cpu Attention over the same f16 pages; tolerance 1e-4.

struct AttentionDecodeParams {
  uint rows;      // of the segment
  uint row;       // its first
  uint start;     // position of that row
  uint heads;     // H
  uint kv_heads;  // Hkv
  uint dim;       // D
  uint sink;
  uint window;      // 0: exact
  uint dense_from;  // position from which rows see all
  float scale;      // 1/√D
  uint splits;
  uint split_tokens;  // positions of a split
};

constant constexpr uint PAGE = 256;
constant constexpr uint SIMDGROUPS = 4;
constant constexpr float LOWEST = -1e30f;

template <uint D>
kernel void attention_decode(constant AttentionDecodeParams &p [[buffer(0)]],
                             device float *partial [[buffer(1)]],
                             device const float *q [[buffer(2)]],
                             device const half *keys [[buffer(4)]],
                             device const half *values [[buffer(5)]],
                             device const int *pages [[buffer(6)]],
                             uint3 tile [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr uint E = D / 32;  // dimensions of a lane
  threadgroup float tops[SIMDGROUPS];
  threadgroup float totals[SIMDGROUPS];
  threadgroup float accs[SIMDGROUPS][D];
  const uint head = tile.y;
  const uint t = p.start + tile.z;
  const uint kv_head = head / (p.heads / p.kv_heads);
  const uint begin = tile.x * p.split_tokens;
  const uint end = min(begin + p.split_tokens, t + 1);
  const bool masked = p.window > 0 && t < p.dense_from;
  q += (ulong(p.row + tile.z) * p.heads + head) * D + lane * E;
  float query[E];
  float acc[E];
  for (uint i = 0; i < E; i++) {
    query[i] = q[i] * p.scale;
    acc[i] = 0.0f;
  }
  float top = LOWEST;
  float total = 0.0f;
  for (uint key = begin + simdgroup * 4; key < end; key += SIMDGROUPS * 4) {
    // The four keys share a page: splits and pages begin at multiples of four.
    const ulong place = ((ulong(pages[key / PAGE]) * p.kv_heads + kv_head) * PAGE + key % PAGE) * D + lane * E;
    float4 scores = float4(0.0f);
    bool seen[4];
    for (uint j = 0; j < 4; j++) {
      seen[j] = key + j < end && (!masked || key + j < p.sink || key + j + p.window > t);
      if (!seen[j]) continue;
      for (uint i = 0; i < E; i++) scores[j] += query[i] * float(keys[place + j * D + i]);
    }
    scores = simd_sum(scores);
    float new_top = top;
    for (uint j = 0; j < 4; j++) new_top = seen[j] ? max(new_top, scores[j]) : new_top;
    const float factor = precise::exp(top - new_top);
    total *= factor;
    for (uint i = 0; i < E; i++) acc[i] *= factor;
    for (uint j = 0; j < 4; j++) {
      if (!seen[j]) continue;
      const float weight = precise::exp(scores[j] - new_top);
      total += weight;
      for (uint i = 0; i < E; i++) acc[i] += weight * float(values[place + j * D + i]);
    }
    top = new_top;
  }
  if (lane == 0) {
    tops[simdgroup] = top;
    totals[simdgroup] = total;
  }
  for (uint i = 0; i < E; i++) accs[simdgroup][lane * E + i] = acc[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  partial += ((ulong(tile.z) * p.heads + head) * p.splits + tile.x) * (D + 2);
  float best = LOWEST;
  for (uint s = 0; s < SIMDGROUPS; s++) best = max(best, tops[s]);
  for (uint i = thread_index; i < D + 1; i += SIMDGROUPS * 32) {
    float sum = 0.0f;
    for (uint s = 0; s < SIMDGROUPS; s++) sum += precise::exp(tops[s] - best) * (i == D ? totals[s] : accs[s][i]);
    partial[i == D ? 1 : 2 + i] = sum;
  }
  if (thread_index == 0) partial[0] = best;
}

template [[host_name("attention_decode_d64")]] kernel void attention_decode<64>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const half *keys [[buffer(4)]], device const half *values [[buffer(5)]], device const int *pages [[buffer(6)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_decode_d128")]] kernel void attention_decode<128>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const half *keys [[buffer(4)]], device const half *values [[buffer(5)]], device const int *pages [[buffer(6)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_decode_d256")]] kernel void attention_decode<256>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const half *keys [[buffer(4)]], device const half *values [[buffer(5)]], device const int *pages [[buffer(6)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);

kernel void attention_combine(constant AttentionDecodeParams &p [[buffer(0)]],
                              device float *dst [[buffer(1)]],
                              device const float *partial [[buffer(2)]],
                              device const float *q_gate [[buffer(3)]],
                              uint2 tile [[threadgroup_position_in_grid]],
                              uint i [[thread_index_in_threadgroup]]) {
  const uint d = p.dim;
  partial += (ulong(tile.y) * p.heads + tile.x) * p.splits * (d + 2);
  float top = LOWEST;
  for (uint s = 0; s < p.splits; s++) top = max(top, partial[s * (d + 2)]);
  float total = 0.0f;
  float sum = 0.0f;
  for (uint s = 0; s < p.splits; s++) {
    const float factor = precise::exp(partial[s * (d + 2)] - top);
    total += factor * partial[s * (d + 2) + 1];
    sum += factor * partial[s * (d + 2) + 2 + i];
  }
  const ulong head = ulong(p.row + tile.y) * p.heads + tile.x;
  dst[head * d + i] = sum / total * sigmoid(q_gate[head * 2 * d + d + i]);
}

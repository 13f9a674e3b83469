// Attention for 1 to 8 rows over long contexts, split along the keys: dst = softmax(q·kᵀ·scale)·v ⊙ sigmoid(gate).
//
// q, q_gate, keys, values, pages as in attention_plain.metal. partial f32 [rows, H, splits, D+2]: a maximum, a sum, D weighted values.
// attention_decode_d64, _d128, _d256  grid: splits × HEADS query heads of one key head × rows. A threadgroup of 128 owns one split. The queries
//                                     lie in threadgroup memory, a barrier; its simdgroups take eight keys of every 32 in turn, a lane
//                                     D/32 dimensions of every key and the softmax of one; keys and values are read once for all HEADS.
//                                     Then, head by head, the simdgroups meet in threadgroup memory: a barrier, one more before it is used again.
//                                     Threadgroup memory: (6 + 4)·D·4 B and 32, 10,272 B at D 256.
// attention_combine                   grid: heads × rows, a thread a dimension. Merges the splits and applies the gate. No barriers.
// Eight keys that the policy hides are not read; a hidden one among others counts as zero. All arithmetic f32.
// Plain variant: attention_flash.metal, and where that fails too attention_plain.metal.
// Reference: device/cpu Attention over the same pages; tolerance 1e-4.

constant uint Q8 [[function_constant(0)]];     // 1: pages are q8
constant uint HEADS [[function_constant(1)]];  // query heads of a threadgroup, 1 to 6, of one key head

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
constant constexpr uint MAX_HEADS = 6;
constant constexpr float LOWEST = -1e30f;

// load reads E neighbouring values: of f16, or of q8 codes with the word that they share. Zero when hidden: read all the same, so that
// the reads of several keys are under way together.
template <uint E>
inline void load(thread float (&to)[E], device const uchar *from, device const uint *word, bool seen) {
  if (Q8 == 0) {
    if (E == 2) {
      const half2 v = *(device const half2 *)from;
      to[0] = seen ? float(v.x) : 0.0f;
      to[1 % E] = seen ? float(v.y) : 0.0f;
    }
    for (uint w = 0; w < E / 4; w++) {
      const half4 v = ((device const half4 *)from)[w];
      for (uint i = 0; i < 4; i++) to[(4 * w + i) % E] = seen ? float(v[i]) : 0.0f;
    }
    return;
  }
  kv_load<E>(to, from, seen ? *word : 0u);
}

// meet sums four scores over four lanes each. A lane ends with its part of score lane % 4, to be summed over the lanes with that number.
inline float meet(float4 scores, uint lane) {
  const bool upper = (lane & 2u) != 0;
  const bool odd = (lane & 1u) != 0;
  const float a = (upper ? scores.z : scores.x) + simd_shuffle_xor(upper ? scores.x : scores.z, ushort(2));
  const float b = (upper ? scores.w : scores.y) + simd_shuffle_xor(upper ? scores.y : scores.w, ushort(2));
  return (odd ? b : a) + simd_shuffle_xor(odd ? a : b, ushort(1));
}

template <uint D>
kernel void attention_decode(constant AttentionDecodeParams &p [[buffer(0)]],
                             device float *partial [[buffer(1)]],
                             device const float *q [[buffer(2)]],
                             device const uchar *keys [[buffer(3)]],
                             device const uchar *values [[buffer(4)]],
                             device const int *pages [[buffer(5)]],
                             uint3 tile [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr uint E = D / 32;  // dimensions of a lane
  threadgroup float queries[MAX_HEADS * D];
  threadgroup float accs[SIMDGROUPS * D];
  threadgroup float tops[SIMDGROUPS];
  threadgroup float totals[SIMDGROUPS];
  const uint first = tile.y * HEADS;
  const uint t = p.start + tile.z;
  const uint kv_head = first / (p.heads / p.kv_heads);
  const uint begin = tile.x * p.split_tokens;
  const uint end = min(begin + p.split_tokens, t + 1);
  const bool masked = p.window > 0 && t < p.dense_from;
  const uint row = Q8 != 0 ? D : 2 * D;  // bytes of a position
  const ulong page_bytes = kv_page_bytes(p.kv_heads, D, Q8 != 0);
  q += (ulong(p.row + tile.z) * p.heads + first) * D;
  for (uint i = thread_index; i < HEADS * D; i += SIMDGROUPS * 32) queries[i] = q[i] * p.scale;
  float acc[MAX_HEADS][E];
  float top[MAX_HEADS];
  float total[MAX_HEADS];  // of the keys lane % 8 of every eight
  for (uint h = 0; h < HEADS; h++) {
    for (uint i = 0; i < E; i++) acc[h][i] = 0.0f;
    top[h] = LOWEST;
    total[h] = 0.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint key = begin + simdgroup * 8; key < end; key += SIMDGROUPS * 8) {
    // The eight keys share a page: splits and pages begin at multiples of eight.
    const ulong page = ulong(pages[key / PAGE]) * page_bytes;
    const ulong place = page + (ulong(kv_head) * PAGE + key % PAGE) * row + lane * (row / 32);
    const ulong words = page + (Q8 != 0 ? kv_words(p.kv_heads, D, kv_head, key % PAGE) : 0) + lane * E / KV_GROUP * 4;
    const uint mine = key + lane % 8;  // the key whose softmax this lane does
    const bool sees = mine < end && (!masked || mine < p.sink || mine + p.window > t);
    const uint eight = simd_or(sees ? 1u << (lane % 8) : 0u);  // which of the eight are seen
    if (eight == 0) continue;
    float parts[2][MAX_HEADS];
    for (uint four = 0; four < 2; four++) {
      float k[4][E];
      for (uint j = 0; j < 4; j++) {
        const uint n = 4 * four + j;
        load<E>(k[j], keys + place + n * row, (device const uint *)(keys + words) + n * (D / KV_GROUP), (eight >> n & 1u) != 0);
      }
      for (uint h = 0; h < HEADS; h++) {
        float4 scores = float4(0.0f);
        for (uint i = 0; i < E; i++) {
          const float query = queries[h * D + lane * E + i];
          for (uint j = 0; j < 4; j++) scores[j] += query * k[j][i];
        }
        parts[four][h] = meet(scores, lane);
      }
    }
    float weights[MAX_HEADS];
    for (uint h = 0; h < HEADS; h++) {
      const bool second = (lane & 4u) != 0;
      float score = (second ? parts[1][h] : parts[0][h]) + simd_shuffle_xor(second ? parts[0][h] : parts[1][h], ushort(4));
      score += simd_shuffle_xor(score, ushort(8));
      score += simd_shuffle_xor(score, ushort(16));
      float best = sees ? score : LOWEST;
      for (ushort m = 1; m < 8; m *= 2) best = max(best, simd_shuffle_xor(best, m));
      best = max(top[h], best);
      const float factor = precise::exp(top[h] - best);
      weights[h] = sees ? precise::exp(score - best) : 0.0f;
      top[h] = best;
      total[h] = total[h] * factor + weights[h];
      for (uint i = 0; i < E; i++) acc[h][i] *= factor;
    }
    for (uint four = 0; four < 2; four++) {
      float v[4][E];
      for (uint j = 0; j < 4; j++) {
        const uint n = 4 * four + j;
        load<E>(v[j], values + place + n * row, (device const uint *)(values + words) + n * (D / KV_GROUP), (eight >> n & 1u) != 0);
      }
      for (uint h = 0; h < HEADS; h++) {
        for (uint j = 0; j < 4; j++) {
          const float weight = simd_shuffle(weights[h], ushort((lane & 24u) + 4 * four + j));
          for (uint i = 0; i < E; i++) acc[h][i] += weight * v[j][i];
        }
      }
    }
  }
  for (uint h = 0; h < HEADS; h++) {
    for (ushort m = 1; m < 8; m *= 2) total[h] += simd_shuffle_xor(total[h], m);
    if (lane == 0) {
      tops[simdgroup] = top[h];
      totals[simdgroup] = total[h];
    }
    for (uint i = 0; i < E; i++) accs[simdgroup * D + lane * E + i] = acc[h][i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device float *to = partial + ((ulong(tile.z) * p.heads + first + h) * p.splits + tile.x) * (D + 2);
    float best = LOWEST;
    for (uint s = 0; s < SIMDGROUPS; s++) best = max(best, tops[s]);
    for (uint i = thread_index; i < D + 1; i += SIMDGROUPS * 32) {
      float sum = 0.0f;
      for (uint s = 0; s < SIMDGROUPS; s++) sum += precise::exp(tops[s] - best) * (i == D ? totals[s] : accs[s * D + i]);
      to[i == D ? 1 : 2 + i] = sum;
    }
    if (thread_index == 0) to[0] = best;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

template [[host_name("attention_decode_d64")]] kernel void attention_decode<64>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const uchar *keys [[buffer(3)]], device const uchar *values [[buffer(4)]], device const int *pages [[buffer(5)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_decode_d128")]] kernel void attention_decode<128>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const uchar *keys [[buffer(3)]], device const uchar *values [[buffer(4)]], device const int *pages [[buffer(5)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_decode_d256")]] kernel void attention_decode<256>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const uchar *keys [[buffer(3)]], device const uchar *values [[buffer(4)]], device const int *pages [[buffer(5)]],
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

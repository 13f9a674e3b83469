// Attention for 1 to 8 rows over long contexts with q8 pages, by simdgroup matrices: what attention_decode does, with up to eight query
// heads of one key head as the rows of a matrix, so that eight keys are multiplied for all of them at once.
//
// q, keys, values, pages, partial as in attention_decode.metal, whose attention_combine follows.
// attention_decode_q8_d64, _d128, _d256: grid: splits × HEADS query heads of one key head × rows. A threadgroup of 128 owns one split; its
// simdgroups take eight keys of every 32 in turn. The queries lie in threadgroup memory, a barrier. A step, between barriers of the simdgroup:
//   keys, as f16, -> its tile | scores = k·qᵀ, a row a key | softmax, two keys of a head a lane, while the values replace the keys | sums = sums·factor + weights·v |
// At the end the simdgroups add their sums up, one after another, a barrier each.
// Which elements of a matrix a lane holds is found out by loading a matrix of row numbers: Metal does not say.
// Threadgroup memory at D 256: q 4,096, tiles 16,896, scores 1,024, weights 512, rest 640: 23,168 B.
// Eight keys that the policy hides are not read; a hidden one among others counts as zero.
// q·scale, keys, values and weights f16; scores, softmax and sums f32. Plain variant: attention_decode.metal.
// Reference: device/cpu Attention over the same pages; tolerance 2e-3 of the row's largest value: operands are rounded to 11 bits.

constant uint HEADS [[function_constant(0)]];  // query heads of a threadgroup, 1 to 8, of one key head

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
constant constexpr uint THREADS = 128;
constant constexpr float LOWEST = -1e30f;

// fill turns this lane's dimensions of eight keys, or values, into a tile of f16. seen: bits of those that are not zero.
template <uint D>
inline void fill(threadgroup half *tile, device const uchar *from, device const uint *words, uint seen, uint lane) {
  constexpr uint E = D / 32;
  float x[8][E];
  for (uint j = 0; j < 8; j++) kv_load<E>(x[j], from + j * D + lane * E, (seen >> j & 1u) != 0 ? words[j * (D / KV_GROUP)] : 0u);
  for (uint j = 0; j < 8; j++) {
    threadgroup half *to = tile + j * (D + 8) + lane * E;
    if (E == 2) *(threadgroup half2 *)to = half2(half(x[j][0]), half(x[j][1 % E]));
    for (uint i = 0; i < E / 4; i++)
      ((threadgroup half4 *)to)[i] = half4(half(x[j][4 * i]), half(x[j][(4 * i + 1) % E]), half(x[j][(4 * i + 2) % E]), half(x[j][(4 * i + 3) % E]));
  }
}

template <uint D>
kernel void attention_decode_q8(constant AttentionDecodeParams &p [[buffer(0)]],
                                device float *partial [[buffer(1)]],
                                device const float *q [[buffer(2)]],
                                device const uchar *keys [[buffer(3)]],
                                device const uchar *values [[buffer(4)]],
                                device const int *pages [[buffer(5)]],
                                uint3 tile [[threadgroup_position_in_grid]],
                                uint thread_index [[thread_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr uint S = D + 8;       // stride of queries and tiles
  constexpr uint BLOCKS = D / 8;  // matrices along the dimensions
  threadgroup half queries[8 * D];             // transposed: [D, 8]
  threadgroup half tiles[SIMDGROUPS * 8 * S];  // at the end the sums, 8·D floats
  threadgroup float scores[SIMDGROUPS * 64];
  threadgroup half weights[SIMDGROUPS * 64];
  threadgroup float factors[SIMDGROUPS * 8];
  threadgroup float tops[SIMDGROUPS * 8];
  threadgroup float totals[SIMDGROUPS * 8];
  threadgroup float numbers[64];
  const uint first = tile.y * HEADS;
  const uint t = p.start + tile.z;
  const uint kv_head = first / (p.heads / p.kv_heads);
  const uint begin = tile.x * p.split_tokens;
  const uint end = min(begin + p.split_tokens, t + 1);
  const bool masked = p.window > 0 && t < p.dense_from;
  const ulong page_bytes = kv_page_bytes(p.kv_heads, D, true);
  q += (ulong(p.row + tile.z) * p.heads + first) * D;
  for (uint i = thread_index; i < 8 * D; i += THREADS) queries[i % D * 8 + i / D] = half(i / D < HEADS ? q[i] * p.scale : 0.0f);
  if (thread_index < 64) numbers[thread_index] = float(thread_index / 8);
  threadgroup half *own = tiles + simdgroup * 8 * S;
  threadgroup float *score = scores + simdgroup * 64;
  threadgroup half *weight = weights + simdgroup * 64;
  threadgroup float *factor = factors + simdgroup * 8;
  const uint head = lane / 4;        // whose softmax this lane does
  const uint pair = lane % 4 * 2;    // for two keys
  float top = LOWEST;
  float total = 0.0f;
  simdgroup_float8x8 sums[BLOCKS];
  for (uint b = 0; b < BLOCKS; b++) sums[b] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 layout;
  simdgroup_load(layout, numbers, 8);
  const uint row0 = uint(layout.thread_elements()[0]);
  const uint row1 = uint(layout.thread_elements()[1]);
  for (uint key = begin + simdgroup * 8; key < end; key += SIMDGROUPS * 8) {
    const uint mine = key + lane % 8;
    const uint eight = simd_or(mine < end && (!masked || mine < p.sink || mine + p.window > t) ? 1u << (lane % 8) : 0u);
    if (eight == 0) continue;
    // The eight keys share a page: splits and pages begin at multiples of eight.
    const ulong page = ulong(pages[key / PAGE]) * page_bytes;
    const ulong place = page + (ulong(kv_head) * PAGE + key % PAGE) * D;
    const ulong words = page + kv_words(p.kv_heads, D, kv_head, key % PAGE) + lane * (D / 32) / KV_GROUP * 4;
    fill<D>(own, keys + place, (device const uint *)(keys + words), eight, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 product = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint b = 0; b < BLOCKS; b++) {
      simdgroup_half8x8 rows;
      simdgroup_half8x8 columns;
      simdgroup_load(rows, own + b * 8, S);
      simdgroup_load(columns, queries + b * 64, 8);
      simdgroup_multiply_accumulate(product, rows, columns, product);
    }
    simdgroup_store(product, score, 8);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const bool sees0 = (eight >> pair & 1u) != 0;
    const bool sees1 = (eight >> (pair + 1) & 1u) != 0;
    const float s0 = sees0 ? score[pair * 8 + head] : LOWEST;
    const float s1 = sees1 ? score[pair * 8 + 8 + head] : LOWEST;
    float new_top = max(top, max(s0, s1));
    for (ushort m = 1; m < 4; m *= 2) new_top = max(new_top, simd_shuffle_xor(new_top, m));
    const float scaled = precise::exp(top - new_top);
    const bool higher = simd_or(new_top > top ? 1u : 0u) != 0;
    const float w0 = sees0 ? precise::exp(s0 - new_top) : 0.0f;
    const float w1 = sees1 ? precise::exp(s1 - new_top) : 0.0f;
    total = total * scaled + (w0 + w1);
    top = new_top;
    weight[head * 8 + pair] = half(w0);
    weight[head * 8 + pair + 1] = half(w1);
    if (pair == 0) factor[head] = scaled;
    fill<D>(own, values + place, (device const uint *)(values + words), eight, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (higher) {
      for (uint b = 0; b < BLOCKS; b++) {
        sums[b].thread_elements()[0] *= factor[row0];
        sums[b].thread_elements()[1] *= factor[row1];
      }
    }
    simdgroup_half8x8 a;
    simdgroup_load(a, weight, 8);
    for (uint b = 0; b < BLOCKS; b++) {
      simdgroup_half8x8 v;
      simdgroup_load(v, own + b * 8, S);
      simdgroup_multiply_accumulate(sums[b], a, v, sums[b]);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (ushort m = 1; m < 4; m *= 2) total += simd_shuffle_xor(total, m);
  if (pair == 0) {
    tops[simdgroup * 8 + head] = top;
    totals[simdgroup * 8 + head] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float best = LOWEST;
  for (uint s = 0; s < SIMDGROUPS; s++) best = max(best, tops[s * 8 + head]);
  if (pair == 0) factor[head] = precise::exp(top - best);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float *all = (threadgroup float *)tiles;
  for (uint s = 0; s < SIMDGROUPS; s++) {
    if (simdgroup == s) {
      for (uint b = 0; b < BLOCKS; b++) {
        sums[b].thread_elements()[0] *= factor[row0];
        sums[b].thread_elements()[1] *= factor[row1];
        if (s > 0) {
          simdgroup_float8x8 before;
          simdgroup_load(before, all + b * 8, D);
          sums[b].thread_elements()[0] += before.thread_elements()[0];
          sums[b].thread_elements()[1] += before.thread_elements()[1];
        }
        simdgroup_store(sums[b], all + b * 8, D);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  partial += ((ulong(tile.z) * p.heads + first) * p.splits + tile.x) * (D + 2);
  for (uint i = thread_index; i < HEADS * D; i += THREADS) partial[ulong(i / D) * p.splits * (D + 2) + 2 + i % D] = all[i];
  if (thread_index < HEADS) {
    const uint h = thread_index;
    float highest = LOWEST;
    float sum = 0.0f;
    for (uint s = 0; s < SIMDGROUPS; s++) highest = max(highest, tops[s * 8 + h]);
    for (uint s = 0; s < SIMDGROUPS; s++) sum += precise::exp(tops[s * 8 + h] - highest) * totals[s * 8 + h];
    partial[ulong(h) * p.splits * (D + 2)] = highest;
    partial[ulong(h) * p.splits * (D + 2) + 1] = sum;
  }
}

template [[host_name("attention_decode_q8_d64")]] kernel void attention_decode_q8<64>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const uchar *keys [[buffer(3)]], device const uchar *values [[buffer(4)]], device const int *pages [[buffer(5)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_decode_q8_d128")]] kernel void attention_decode_q8<128>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const uchar *keys [[buffer(3)]], device const uchar *values [[buffer(4)]], device const int *pages [[buffer(5)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_decode_q8_d256")]] kernel void attention_decode_q8<256>(
    constant AttentionDecodeParams &p [[buffer(0)]], device float *partial [[buffer(1)]], device const float *q [[buffer(2)]],
    device const uchar *keys [[buffer(3)]], device const uchar *values [[buffer(4)]], device const int *pages [[buffer(5)]],
    uint3 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);

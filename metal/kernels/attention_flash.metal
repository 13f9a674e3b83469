// Attention for many rows, prefill: dst = softmax(q·kᵀ·scale)·v ⊙ sigmoid(gate), causal, under the segment's policy, tile by tile, by
// simdgroup matrices.
//
// dst, q, q_gate, keys, values, pages as in attention_plain.metal.
// attention_flash_d64, _d128, _d256: a threadgroup of 128 owns 16 rows of one query head (grid: tiles of rows × heads) and walks over tiles
// of 32 keys that any of its rows sees. A step, between barriers:
//   keys -> threadgroup memory | scores = q·kᵀ, 8 keys a simdgroup | softmax, 8 threads a row, while the values replace the keys
//   | sums = sums·factor + weights·v, D/4 dimensions a simdgroup |
// Which elements of a matrix a lane holds is found out by loading a matrix of row numbers: Metal does not say.
// A weight of zero times a value that is no number would spoil a row that does not see it: such values enter as zero, and the rows
// that do see them become NaN at the end.
// Threadgroup memory at D 256: q 8,448, keys or values 16,896, scores 2,304, weights 1,280, rest 512: 29,440 B of 32,768.
// q·scale, keys, values (q8: scale·code + bias, rounded) and weights f16; scores, softmax and sums f32; masked scores are finite.
// Plain variant: attention_plain.metal.
// Reference: device/cpu Attention; tolerance 2e-3 of the row's largest value: q and the weights are rounded to 11 bits.

struct AttentionParams {
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
};

constant uint Q8 [[function_constant(0)]];  // 1: pages are q8
constant constexpr uint PAGE = 256;
constant constexpr uint QUERIES = 16;
constant constexpr uint KEYS = 32;
constant constexpr uint THREADS = 128;
constant constexpr uint PAD = 8;
constant constexpr uint SCORES = 36;   // stride of a row of scores
constant constexpr uint WEIGHTS = 40;  // and of weights
constant constexpr float LOWEST = -1e30f;

// four reads 4 values of a head, in a page whose words for the first position of the tile begin at words.
template <uint D>
inline half4 four(device const uchar *page, ulong place, ulong words, uint i) {
  if (Q8 == 0) return *(device const half4 *)(page + (place + i) * 2);
  const uint codes = *(device const uint *)(page + place + i);
  const uint word = *(device const uint *)(page + words + i / KV_GROUP * 4);
  const float scale = kv_scale(word);
  const float bias = kv_bias(word);
  return half4(half(scale * float(codes & 255u) + bias), half(scale * float(codes >> 8 & 255u) + bias),
               half(scale * float(codes >> 16 & 255u) + bias), half(scale * float(codes >> 24) + bias));
}

template <uint D>
kernel void attention_flash(constant AttentionParams &p [[buffer(0)]],
                            device float *dst [[buffer(1)]],
                            device const float *q [[buffer(2)]],
                            device const float *q_gate [[buffer(3)]],
                            device const uchar *keys [[buffer(4)]],
                            device const uchar *values [[buffer(5)]],
                            device const int *pages [[buffer(6)]],
                            uint2 tile [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr uint S = D + PAD;        // stride of q, keys and values
  constexpr uint BLOCKS = D / 32;    // blocks of 8 dimensions of a simdgroup
  threadgroup half qs[QUERIES * S];
  threadgroup half kv[KEYS * S];
  threadgroup float scores[QUERIES * SCORES];
  threadgroup half weights[QUERIES * WEIGHTS];
  threadgroup float factors[QUERIES];
  threadgroup uint spoilt[KEYS];
  threadgroup float numbers[64];
  const uint head = tile.y;
  const uint kv_head = head / (p.heads / p.kv_heads);
  const uint first = tile.x * QUERIES;
  const uint low = p.start + first;  // position of the first row
  const uint end = p.start + min(first + QUERIES, p.rows);
  const uint r = thread_index / 8;  // this thread's row of the softmax
  const uint t = low + r;
  const bool masked = p.window > 0 && t < p.dense_from;
  for (uint i = thread_index; i < QUERIES * D; i += THREADS) {
    const uint row = first + i / D;
    qs[i / D * S + i % D] = half(row < p.rows ? q[(ulong(p.row + row) * p.heads + head) * D + i % D] * p.scale : 0.0f);
  }
  if (thread_index < 64) numbers[thread_index] = float(thread_index / 8);
  simdgroup_float8x8 sums[2][BLOCKS];
  for (uint i = 0; i < 2; i++)
    for (uint b = 0; b < BLOCKS; b++) sums[i][b] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  float top = LOWEST;
  float total = 0.0f;
  bool bad = false;
  for (uint from = 0; from < end; from += KEYS) {
    if (p.window > 0 && end <= p.dense_from && from >= p.sink && from + KEYS + p.window <= low + 1) continue;
    const ulong page = ulong(pages[from / PAGE]) * kv_page_bytes(p.kv_heads, D, Q8 != 0);
    const ulong place = (ulong(kv_head) * PAGE + from % PAGE) * D;
    const ulong words = kv_words(p.kv_heads, D, kv_head, from % PAGE);
    for (uint i = thread_index * 4; i < KEYS * D; i += THREADS * 4) {
      const bool there = from + i / D < end;
      *(threadgroup half4 *)(kv + i / D * S + i % D) = there ? four<D>(keys + page, place, words, i) : half4(half(0.0f));
    }
    if (thread_index < KEYS) spoilt[thread_index] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 score[2];
    for (uint i = 0; i < 2; i++) score[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < D; k += 8) {
      simdgroup_half8x8 b;
      simdgroup_load(b, kv + simdgroup * 8 * S + k, S, ulong2(0, 0), true);
      for (uint i = 0; i < 2; i++) {
        simdgroup_half8x8 a;
        simdgroup_load(a, qs + i * 8 * S + k, S);
        simdgroup_multiply_accumulate(score[i], a, b, score[i]);
      }
    }
    for (uint i = 0; i < 2; i++) simdgroup_store(score[i], scores + i * 8 * SCORES + simdgroup * 8, SCORES);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float s[4];
    bool seen[4];
    float new_top = top;
    for (uint j = 0; j < 4; j++) {
      const uint key = from + thread_index % 8 * 4 + j;
      seen[j] = key <= t && key < end && (!masked || key < p.sink || key + p.window > t);
      s[j] = seen[j] ? scores[r * SCORES + thread_index % 8 * 4 + j] : LOWEST;
      new_top = max(new_top, s[j]);
    }
    for (ushort m = 1; m < 8; m *= 2) new_top = max(new_top, simd_shuffle_xor(new_top, m));
    const float factor = precise::exp(top - new_top);
    float sum = 0.0f;
    for (uint j = 0; j < 4; j++) {
      const float weight = seen[j] ? precise::exp(s[j] - new_top) : 0.0f;
      weights[r * WEIGHTS + thread_index % 8 * 4 + j] = half(weight);
      sum += weight;
    }
    for (ushort m = 1; m < 8; m *= 2) sum += simd_shuffle_xor(sum, m);
    total = total * factor + sum;
    top = new_top;
    if (thread_index % 8 == 0) factors[r] = factor;
    for (uint i = thread_index * 4; i < KEYS * D; i += THREADS * 4) {
      half4 v = from + i / D < end ? four<D>(values + page, place, words, i) : half4(half(0.0f));
      if (!(isfinite(float(v.x)) && isfinite(float(v.y)) && isfinite(float(v.z)) && isfinite(float(v.w)))) {
        v = half4(half(0.0f));
        spoilt[i / D] = 1;
      }
      *(threadgroup half4 *)(kv + i / D * S + i % D) = v;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 4; j++) bad = bad || (seen[j] && spoilt[thread_index % 8 * 4 + j] != 0);
    simdgroup_float8x8 layout;
    simdgroup_load(layout, numbers, 8);
    const uint row0 = uint(layout.thread_elements()[0]);
    const uint row1 = uint(layout.thread_elements()[1]);
    for (uint i = 0; i < 2; i++) {
      for (uint b = 0; b < BLOCKS; b++) {
        sums[i][b].thread_elements()[0] *= factors[i * 8 + row0];
        sums[i][b].thread_elements()[1] *= factors[i * 8 + row1];
      }
    }
    for (uint k = 0; k < KEYS; k += 8) {
      simdgroup_half8x8 a[2];
      for (uint i = 0; i < 2; i++) simdgroup_load(a[i], weights + i * 8 * WEIGHTS + k, WEIGHTS);
      for (uint b = 0; b < BLOCKS; b++) {
        simdgroup_half8x8 v;
        simdgroup_load(v, kv + k * S + (simdgroup * BLOCKS + b) * 8, S);
        for (uint i = 0; i < 2; i++) simdgroup_multiply_accumulate(sums[i][b], a[i], v, sums[i][b]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  uint spoilt_row = bad ? 1 : 0;
  for (ushort m = 1; m < 8; m *= 2) spoilt_row |= simd_shuffle_xor(spoilt_row, m);
  if (thread_index % 8 == 0) factors[r] = spoilt_row != 0 ? as_type<float>(0x7fc00000u) : 1.0f / total;
  threadgroup float *out = (threadgroup float *)kv;  // QUERIES·D floats fit into KEYS·(D+PAD) halves
  for (uint i = 0; i < 2; i++)
    for (uint b = 0; b < BLOCKS; b++) simdgroup_store(sums[i][b], out + i * 8 * D + (simdgroup * BLOCKS + b) * 8, D);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = thread_index; i < QUERIES * D; i += THREADS) {
    const uint row = first + i / D;
    if (row >= p.rows) continue;
    const ulong at = ulong(p.row + row) * p.heads + head;
    dst[at * D + i % D] = out[i] * factors[i / D] * sigmoid(q_gate[at * 2 * D + D + i % D]);
  }
}

template [[host_name("attention_flash_d64")]] kernel void attention_flash<64>(
    constant AttentionParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *q [[buffer(2)]],
    device const float *q_gate [[buffer(3)]], device const uchar *keys [[buffer(4)]], device const uchar *values [[buffer(5)]],
    device const int *pages [[buffer(6)]], uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_flash_d128")]] kernel void attention_flash<128>(
    constant AttentionParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *q [[buffer(2)]],
    device const float *q_gate [[buffer(3)]], device const uchar *keys [[buffer(4)]], device const uchar *values [[buffer(5)]],
    device const int *pages [[buffer(6)]], uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("attention_flash_d256")]] kernel void attention_flash<256>(
    constant AttentionParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *q [[buffer(2)]],
    device const float *q_gate [[buffer(3)]], device const uchar *keys [[buffer(4)]], device const uchar *values [[buffer(5)]],
    device const int *pages [[buffer(6)]], uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);

// Attention for 1 to 8 rows over long contexts with q8 pages, by simdgroup matrices: what attention_decode does, with up to eight query
// heads of one key head as the rows of a matrix, so that eight keys are multiplied for all of them at once.
//
// q, keys, values, pages, partial as in attention_decode.metal, whose attention_combine follows.
// attention_decode_q8_d64, _d128, _d256: grid: splits × HEADS query heads of one key head × rows. A threadgroup of 128 owns one split; its
// simdgroups take eight keys of every 32 in turn. The queries lie in threadgroup memory, a barrier. A step, with two barriers of the simdgroup:
//   scores = scale·(codes·qᵀ) + bias·Σq, group by group, a row a key -> | softmax, two keys of a head a lane -> | sums = sums·factor + weights·v
// At the end the simdgroups add their sums up, one after another, a barrier each.
// Codes go straight from device memory into a lane's elements of a matrix, put under the high byte of an f16: of keys as 1024 + code, whose
// 1024 leaves with the bias (f32 rounds at most a thousandth of a code by it), of values as 16 + code/64, whose 16 is subtracted.
// Which elements a lane holds is found out by loading a matrix of their numbers: Metal does not say. Two neighbours of a row are taken for
// granted; where they are others the answer is NaN, and the self-test goes on with the plain variant.
// Threadgroup memory at D 256: q 4,096, sums 8,192, scores 1,024, weights 512, rest 640: 14,464 B.
// Eight keys that the policy hides are not read; a hidden one among others counts as zero.
// q·scale, values and weights f16, keys exact; scores, softmax and sums f32. Plain variant: attention_decode.metal.
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

// place is where dimension d stands among the columns of D/8 matrices: a lane with two neighbouring columns has sixteen neighbouring
// dimensions of each 64, which it reads at once, and both columns of a matrix in one word.
inline uint place(uint d) { return d / 64 * 64 + (d % 16 / 4 * 2 + d % 2) * 8 + d % 64 / 16 * 2 + d % 4 / 2; }

// columns are a lane's elements of matrix j of a group: codes 0 and 2, or 1 and 3, of a word, under the high byte of an f16.
inline half2 columns(uint4 codes, uint j, uchar high) {
  const uchar4 c = as_type<uchar4>(codes[j / 2]);
  return as_type<half2>(j % 2 == 0 ? uchar4(c.x, high, c.z, high) : uchar4(c.y, high, c.w, high));
}

constant constexpr uchar WHOLE = 0x64;     // 1024 + code
constant constexpr uchar FRACTION = 0x4c;  // 16 + code/64

// Coded is a lane's sixteen codes of each 64 of a key, or a value, and the words of these.
template <uint GROUPS>
struct Coded {
  uint4 codes[GROUPS];
  uint words[GROUPS];
};

// load leaves the words of what is hidden at 0.
template <uint GROUPS>
inline void load(thread Coded<GROUPS> &to, device const uchar *codes, device const uchar *words, bool seen) {
  for (uint g = 0; g < GROUPS; g++) to.codes[g] = *(device const uint4 *)(codes + g * KV_GROUP);
  if (GROUPS == 4) {
    const uint4 four = *(device const uint4 *)words;
    for (uint g = 0; g < GROUPS; g++) to.words[g] = seen ? four[g] : 0u;
  } else {
    for (uint g = 0; g < GROUPS; g++) to.words[g] = seen ? ((device const uint *)words)[g] : 0u;
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
  constexpr uint GROUPS = D / KV_GROUP;
  threadgroup half queries[8 * D];  // [D/8, 8 heads, 8 columns]
  threadgroup float all[8 * D];     // sums of all simdgroups [8 heads, D], in the order of place
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
  for (uint i = thread_index; i < 8 * D; i += THREADS) {
    const uint at = place(i % D);
    queries[at / 8 * 64 + i / D * 8 + at % 8] = half(i / D < HEADS ? q[i] * p.scale : 0.0f);
  }
  if (thread_index < 64) numbers[thread_index] = float(thread_index);
  threadgroup float *score = scores + simdgroup * 64;
  threadgroup half *weight = weights + simdgroup * 64;
  threadgroup float *factor = factors + simdgroup * 8;
  const uint head = lane / 4;      // whose softmax this lane does
  const uint pair = lane % 4 * 2;  // for two keys
  float top = LOWEST;
  float total = 0.0f;
  simdgroup_float8x8 sums[8 * GROUPS];
  for (uint b = 0; b < 8 * GROUPS; b++) sums[b] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 layout;
  simdgroup_load(layout, numbers, 8);
  const uint element = uint(layout.thread_elements()[0]);
  const uint row = element / 8;
  const bool neighbours = element % 2 == 0 && uint(layout.thread_elements()[1]) == element + 1;
  simdgroup_float8x8 query_sums[GROUPS];  // Σq of a group, by heads; every row the same
  for (uint g = 0; g < GROUPS; g++) {
    query_sums[g] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    const simdgroup_half8x8 ones = make_filled_simdgroup_matrix<half, 8, 8>(half(1.0f));
    for (uint j = 0; j < 8; j++) {
      simdgroup_half8x8 m;
      simdgroup_load(m, queries + (8 * g + j) * 64, 8, ulong2(0, 0), true);
      simdgroup_multiply_accumulate(query_sums[g], ones, m, query_sums[g]);
    }
  }
  for (uint key = begin + simdgroup * 8; key < end; key += SIMDGROUPS * 8) {
    const uint mine = key + lane % 8;
    const uint eight = simd_or(mine < end && (!masked || mine < p.sink || mine + p.window > t) ? 1u << (lane % 8) : 0u);
    if (eight == 0) continue;
    // The eight keys share a page: splits and pages begin at multiples of eight.
    const ulong page = ulong(pages[key / PAGE]) * page_bytes;
    const ulong from = page + (ulong(kv_head) * PAGE + key % PAGE + row) * D + element % 8 / 2 * 16;
    const ulong words = page + kv_words(p.kv_heads, D, kv_head, key % PAGE + row);
    const bool seen = (eight >> row & 1u) != 0;
    Coded<GROUPS> k, v;
    load(k, keys + from, keys + words, seen);
    load(v, values + from, values + words, seen);
    simdgroup_float8x8 products[GROUPS];
    for (uint g = 0; g < GROUPS; g++) {
      simdgroup_half8x8 rows[8];
      for (uint j = 0; j < 8; j++) {
        const half2 c = columns(k.codes[g], j, WHOLE);
        rows[j].thread_elements()[0] = c.x;
        rows[j].thread_elements()[1] = c.y;
      }
      products[g] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint j = 0; j < 8; j++) {
        simdgroup_half8x8 m;
        simdgroup_load(m, queries + (8 * g + j) * 64, 8, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(products[g], rows[j], m, products[g]);
      }
    }
    simdgroup_float8x8 product = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint g = 0; g < GROUPS; g++) {
      const float scale = kv_scale(k.words[g]);
      const float bias = kv_bias(k.words[g]) - 1024.0f * scale;
      product.thread_elements()[0] += scale * products[g].thread_elements()[0] + bias * query_sums[g].thread_elements()[0];
      product.thread_elements()[1] += scale * products[g].thread_elements()[1] + bias * query_sums[g].thread_elements()[1];
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
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (higher) {
      const float f = factor[row];
      for (uint b = 0; b < 8 * GROUPS; b++) {
        sums[b].thread_elements()[0] *= f;
        sums[b].thread_elements()[1] *= f;
      }
    }
    simdgroup_half8x8 a;
    simdgroup_load(a, weight, 8);
    for (uint g = 0; g < GROUPS; g++) {
      const half2 scale = half2(half(64.0f * kv_scale(v.words[g])));
      const half2 bias = half2(half(kv_bias(v.words[g])));
      simdgroup_half8x8 rows[8];
      for (uint j = 0; j < 8; j++) {
        const half2 x = fma(columns(v.codes[g], j, FRACTION) - half2(half(16.0f)), scale, bias);
        rows[j].thread_elements()[0] = x.x;
        rows[j].thread_elements()[1] = x.y;
      }
      for (uint j = 0; j < 8; j++) simdgroup_multiply_accumulate(sums[8 * g + j], a, rows[j], sums[8 * g + j]);
    }
  }
  for (ushort m = 1; m < 4; m *= 2) total += simd_shuffle_xor(total, m);
  if (pair == 0) {
    tops[simdgroup * 8 + head] = top;
    totals[simdgroup * 8 + head] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float best = LOWEST;
  for (uint s = 0; s < SIMDGROUPS; s++) best = max(best, tops[s * 8 + row]);
  const float f = neighbours ? precise::exp(tops[simdgroup * 8 + row] - best) : as_type<float>(0x7fc00000u);
  for (uint s = 0; s < SIMDGROUPS; s++) {
    if (simdgroup == s) {
      for (uint b = 0; b < 8 * GROUPS; b++) {
        sums[b].thread_elements()[0] *= f;
        sums[b].thread_elements()[1] *= f;
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
  for (uint i = thread_index; i < HEADS * D; i += THREADS) partial[ulong(i / D) * p.splits * (D + 2) + 2 + i % D] = all[i / D * D + place(i % D)];
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

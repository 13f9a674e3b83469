// Gated delta rule in chunks of 16 tokens, prefill: what delta_step does one token at a time, as matrix products. Per value head, with k
// and q normed as there and P_ij = Π α_m over j < m <= i:
//   L_ij = β_i (k_i·k_j) P_ij, j < i       f_i = β_i (v_i - P_i0 S·k_i) - Σ_{j<i} L_ij f_j      (P_i0: from the chunk's start, α_i included)
//   o_i  = P_i0 S·q_i + Σ_{j<=i} (q_i·k_j) P_ij f_j      S = P_end S + Σ_i P_end,i f_i k_iᵀ
//
// Buffers as of delta_step.metal; value_dim a multiple of 8. One dispatch a segment; grid x: value rows by 32, y: value heads.
// delta_chunk_dk32, _dk64, _dk128: a threadgroup of 128 owns 32 rows of S; each simdgroup keeps its 8 rows in registers, transposed, over
// the whole loop. A chunk, between barriers:
//   load k, q, norms, decays | k·kᵀ, q·kᵀ, S·k, S·q by simdgroup matrices, P | f by forward substitution, a lane a value row, and the mask of
//   q·kᵀ | (q·kᵀ)·f, S | dst |
// A short last chunk is filled with k = q = 0, β = 0, α = 1, which changes nothing. Decays are products, never quotients.
// What is no number in a row would spoil earlier rows of its chunk through products with zero: it enters as zero, and the rows that do see
// it become NaN at the end, as does S.
// Threadgroup memory at Dk 128: k and q 16,896, four tiles 9,216, scores 2,560, decays 1,280, rest 384: 30,336 B of 32,768.
// All f32. Plain variant: delta_step.metal. Reference: device/cpu DeltaRule; tolerance 1e-4 of the largest output of the segment.

struct DeltaStepParams {
  uint rows;
  uint key_heads;
  uint value_heads;
  uint key_dim;
  uint value_dim;
};

constant constexpr uint CHUNK = 16;
constant constexpr uint VALUES = 32;   // rows of S of a threadgroup
constant constexpr uint TILE = 36;     // stride of a tile [CHUNK, VALUES]
constant constexpr uint SCORES = 20;   // and of scores [CHUNK, CHUNK]
constant constexpr uint THREADS = 128;

// unit writes a row of k or q, scaled to length 1 and then by scale; zero where there is no row.
template <uint DK>
inline void unit(threadgroup float *to, device const float *from, bool there, float scale, uint lane) {
  float x[DK / 32];
  float sum = 0.0f;
  for (uint i = 0; i < DK / 32; i++) {
    x[i] = there ? from[lane + 32 * i] : 0.0f;
    sum += x[i] * x[i];
  }
  const float norm = precise::rsqrt(simd_sum(sum) + 1e-6f) * scale;
  for (uint i = 0; i < DK / 32; i++) to[lane + 32 * i] = x[i] * norm;
}

template <uint DK>
kernel void delta_chunk(constant DeltaStepParams &p [[buffer(0)]],
                        device float *dst [[buffer(1)]],
                        device const float *qkv [[buffer(2)]],
                        device const float *alpha [[buffer(3)]],
                        device const float *beta [[buffer(4)]],
                        device float *state [[buffer(5)]],
                        uint2 tile [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr uint S = DK + 4;        // stride of k and q
  constexpr uint BLOCKS = DK / 8;
  threadgroup float ks[CHUNK * S];
  threadgroup float qs[CHUNK * S];
  threadgroup float products[CHUNK * TILE];  // S·k, later (q·kᵀ)·f
  threadgroup float outputs[CHUNK * TILE];   // S·q
  threadgroup float fresh[CHUNK * TILE];     // P_end,i f_i
  threadgroup float summed[CHUNK * TILE];    // f, finite
  threadgroup float scores[2 * CHUNK * SCORES];  // k·kᵀ, then q·kᵀ
  threadgroup float decays[CHUNK * SCORES];      // P_ij
  threadgroup float alphas[CHUNK];
  threadgroup float betas[CHUNK];
  threadgroup float starts[CHUNK];  // P_i0
  threadgroup uint spoilt[VALUES];  // the first row of the chunk in which f is no number
  const uint head = tile.y;
  const uint first = tile.x * VALUES;
  const uint key = head / (p.value_heads / p.key_heads);
  const uint width = 2 * p.key_heads * DK + p.value_heads * p.value_dim;
  const uint own = first + simdgroup * 8;  // this simdgroup's first row of S
  const bool active = own < p.value_dim;
  const float root = precise::rsqrt(float(DK));
  device const float *q = qkv + key * DK;
  device const float *k = q + p.key_heads * DK;
  device const float *v = qkv + 2 * p.key_heads * DK + head * p.value_dim;
  state += (ulong(head) * p.value_dim + own) * DK;
  dst += head * p.value_dim;
  alpha += head;
  beta += head;
  simdgroup_float8x8 s[BLOCKS];  // [Dk, rows of S]
  for (uint b = 0; b < BLOCKS; b++) {
    s[b] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    if (active) simdgroup_load(s[b], state + b * 8, DK, ulong2(0, 0), true);
  }
  for (uint from = 0; from < p.rows; from += CHUNK) {
    const uint n = min(CHUNK, p.rows - from);
    for (uint i = simdgroup; i < CHUNK; i += 4) {
      const ulong row = ulong(from + min(i, n - 1)) * width;
      unit<DK>(ks + i * S, k + row, i < n, 1.0f, lane);
      unit<DK>(qs + i * S, q + row, i < n, root, lane);
    }
    if (thread_index < CHUNK) {
      const uint i = thread_index;
      alphas[i] = i < n ? alpha[ulong(from + i) * p.value_heads] : 1.0f;
      betas[i] = i < n ? beta[ulong(from + i) * p.value_heads] : 0.0f;
      float product = 1.0f;
      for (uint j = 0; j <= min(i, n - 1); j++) product *= alpha[ulong(from + j) * p.value_heads];
      starts[i] = product;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    {
      // Simdgroups 0 and 1 make k·kᵀ, 2 and 3 q·kᵀ, eight rows each.
      threadgroup const float *a = (simdgroup < 2 ? ks : qs) + simdgroup % 2 * 8 * S;
      simdgroup_float8x8 score[2];
      for (uint j = 0; j < 2; j++) score[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint b = 0; b < BLOCKS; b++) {
        simdgroup_float8x8 rows;
        simdgroup_load(rows, a + b * 8, S);
        for (uint j = 0; j < 2; j++) {
          simdgroup_float8x8 columns;
          simdgroup_load(columns, ks + j * 8 * S + b * 8, S, ulong2(0, 0), true);
          simdgroup_multiply_accumulate(score[j], rows, columns, score[j]);
        }
      }
      threadgroup float *to = scores + simdgroup / 2 * CHUNK * SCORES + simdgroup % 2 * 8 * SCORES;
      for (uint j = 0; j < 2; j++) simdgroup_store(score[j], to + j * 8, SCORES);
    }
    for (uint i = 0; i < 2; i++) {
      simdgroup_float8x8 product = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      simdgroup_float8x8 output = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint b = 0; b < BLOCKS; b++) {
        simdgroup_float8x8 rows;
        simdgroup_load(rows, ks + i * 8 * S + b * 8, S);
        simdgroup_multiply_accumulate(product, rows, s[b], product);
        simdgroup_load(rows, qs + i * 8 * S + b * 8, S);
        simdgroup_multiply_accumulate(output, rows, s[b], output);
      }
      simdgroup_store(product, products + i * 8 * TILE + simdgroup * 8, TILE);
      simdgroup_store(output, outputs + i * 8 * TILE + simdgroup * 8, TILE);
    }
    for (uint i = thread_index; i < CHUNK * CHUNK; i += THREADS) {
      float product = 1.0f;
      for (uint m = i % CHUNK + 1; m <= i / CHUNK; m++) product *= alphas[m];
      decays[i / CHUNK * SCORES + i % CHUNK] = product;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < VALUES) {
      const uint c = thread_index;
      float f[CHUNK];
      uint bad = CHUNK;
      for (uint i = 0; i < CHUNK; i++) {
        const float value = i < n && first + c < p.value_dim ? v[ulong(from + i) * width + first + c] : 0.0f;
        float sum = value - starts[i] * products[i * TILE + c];
        for (uint j = 0; j < i; j++) sum -= scores[i * SCORES + j] * decays[i * SCORES + j] * f[j];
        f[i] = i < n ? betas[i] * sum : 0.0f;
        if (!isfinite(f[i])) bad = min(bad, i);
        fresh[i * TILE + c] = f[i] * decays[(CHUNK - 1) * SCORES + i];
        summed[i * TILE + c] = isfinite(f[i]) ? f[i] : 0.0f;
      }
      spoilt[c] = bad;
    } else {
      threadgroup float *a = scores + CHUNK * SCORES;
      for (uint i = thread_index - VALUES; i < CHUNK * CHUNK; i += THREADS - VALUES) {
        const uint at = i / CHUNK * SCORES + i % CHUNK;
        a[at] = i % CHUNK <= i / CHUNK ? a[at] * decays[at] : 0.0f;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float end = starts[CHUNK - 1];
    for (uint i = 0; i < 2; i++) {
      simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint j = 0; j <= i; j++) {
        simdgroup_float8x8 a;
        simdgroup_float8x8 f;
        simdgroup_load(a, scores + (CHUNK + i * 8) * SCORES + j * 8, SCORES);
        simdgroup_load(f, summed + j * 8 * TILE + simdgroup * 8, TILE);
        simdgroup_multiply_accumulate(sum, a, f, sum);
      }
      simdgroup_store(sum, products + i * 8 * TILE + simdgroup * 8, TILE);
    }
    simdgroup_float8x8 f[2];
    for (uint i = 0; i < 2; i++) simdgroup_load(f[i], fresh + i * 8 * TILE + simdgroup * 8, TILE);
    for (uint b = 0; b < BLOCKS; b++) {
      s[b].thread_elements()[0] *= end;
      s[b].thread_elements()[1] *= end;
      for (uint i = 0; i < 2; i++) {
        simdgroup_float8x8 columns;
        simdgroup_load(columns, ks + i * 8 * S + b * 8, S, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(s[b], columns, f[i], s[b]);
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < n * VALUES; i += THREADS) {
      const uint row = i / VALUES;
      const uint c = i % VALUES;
      if (first + c >= p.value_dim) continue;
      const float o = starts[row] * outputs[row * TILE + c] + products[row * TILE + c];
      dst[ulong(from + row) * p.value_heads * p.value_dim + first + c] = row < spoilt[c] ? o : as_type<float>(0x7fc00000u);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (!active) return;
  for (uint b = 0; b < BLOCKS; b++) simdgroup_store(s[b], state + b * 8, DK, ulong2(0, 0), true);
}

template [[host_name("delta_chunk_dk32")]] kernel void delta_chunk<32>(
    constant DeltaStepParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *qkv [[buffer(2)]],
    device const float *alpha [[buffer(3)]], device const float *beta [[buffer(4)]], device float *state [[buffer(5)]],
    uint2 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("delta_chunk_dk64")]] kernel void delta_chunk<64>(
    constant DeltaStepParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *qkv [[buffer(2)]],
    device const float *alpha [[buffer(3)]], device const float *beta [[buffer(4)]], device float *state [[buffer(5)]],
    uint2 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("delta_chunk_dk128")]] kernel void delta_chunk<128>(
    constant DeltaStepParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *qkv [[buffer(2)]],
    device const float *alpha [[buffer(3)]], device const float *beta [[buffer(4)]], device float *state [[buffer(5)]],
    uint2 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);

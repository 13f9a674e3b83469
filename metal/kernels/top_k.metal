// The k largest of every row, largest first, of equal ones the leftmost first; k = 1 is argmax. What a sampler needs of logits.
//
// src f32 [rows, cols]; values, ids f32 [rows, k], an id being a column as a number, exact below 2^24.
// A threadgroup of 256 owns a row and goes through it k times, each time for the best behind the last one found. A thread takes every
// 256th column; the simdgroups meet in threadgroup memory, a barrier a time, in two places by turns. Its own plain variant.
// A value that is no number is never chosen; where nothing is left the value is no number and the id -1.
// Exact. Reference: a sort; k in [1, cols].

struct TopKParams {
  uint rows;
  uint cols;
  uint k;
};

constant constexpr uint THREADS = 256;
constant constexpr uint SIMDGROUPS = 8;

// better tells whether (v, i) comes before (w, j).
inline bool better(float v, uint i, float w, uint j) { return v > w || (v == w && i < j); }

kernel void top_k(constant TopKParams &p [[buffer(0)]],
                  device float *values [[buffer(1)]],
                  device float *ids [[buffer(2)]],
                  device const float *src [[buffer(3)]],
                  uint row [[threadgroup_position_in_grid]],
                  uint thread_index [[thread_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float best_values[2 * SIMDGROUPS];
  threadgroup uint best_ids[2 * SIMDGROUPS];
  const float lowest = as_type<float>(0xff800000u);  // -∞
  src += ulong(row) * p.cols;
  float last = 0.0f;
  uint last_id = 0;
  for (uint n = 0; n < p.k; n++) {
    float best = lowest;
    uint id = p.cols;
    for (uint i = thread_index; i < p.cols; i += THREADS) {
      const float v = src[i];
      if ((n == 0 || better(last, last_id, v, i)) && better(v, i, best, id)) {
        best = v;
        id = i;
      }
    }
    for (ushort m = 1; m < 32; m *= 2) {
      const float other = simd_shuffle_xor(best, m);
      const uint other_id = simd_shuffle_xor(id, m);
      if (better(other, other_id, best, id)) {
        best = other;
        id = other_id;
      }
    }
    if (lane == 0) {
      best_values[n % 2 * SIMDGROUPS + simdgroup] = best;
      best_ids[n % 2 * SIMDGROUPS + simdgroup] = id;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = n % 2 * SIMDGROUPS; s < (n % 2 + 1) * SIMDGROUPS; s++) {
      if (better(best_values[s], best_ids[s], best, id)) {
        best = best_values[s];
        id = best_ids[s];
      }
    }
    last = best;
    last_id = id;
    if (thread_index == 0) {
      values[row * p.k + n] = id < p.cols ? best : as_type<float>(0x7fc00000u);
      ids[row * p.k + n] = id < p.cols ? float(id) : -1.0f;
    }
  }
}

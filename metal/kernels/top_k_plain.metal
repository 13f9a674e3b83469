// The k largest of every row, whatever k and the row's length: top_k, plain.
//
// src f32 [rows, cols]; values, ids f32 [rows, k], an id being a column as a number, exact below 2^24.
// A threadgroup of 256 owns a row and goes through it k times, each time for the best behind the last one found. A thread takes every
// 256th column; the simdgroups meet in threadgroup memory, a barrier a time, in two places by turns.
// Values are compared by rank (prelude): a row with what is no number has no largest, its values are NaN and its ids -1.
// Exact. Reference: device/cpu TopK. k in [1, cols].

struct TopKParams {
  uint rows;
  uint cols;
  uint k;
};

constant constexpr uint THREADS = 256;
constant constexpr uint SIMDGROUPS = 8;

// better tells whether rank v at column i comes before rank w at column j.
inline bool better(uint v, uint i, uint w, uint j) { return v > w || (v == w && i < j); }

kernel void top_k_plain(constant TopKParams &p [[buffer(0)]],
                        device float *values [[buffer(1)]],
                        device float *ids [[buffer(2)]],
                        device const float *src [[buffer(3)]],
                        uint row [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint best_ranks[2 * SIMDGROUPS];
  threadgroup uint best_ids[2 * SIMDGROUPS];
  src += ulong(row) * p.cols;
  uint last = 0;
  uint last_id = 0;
  bool none = false;
  for (uint n = 0; n < p.k; n++) {
    uint best = 0;  // below every rank
    uint id = p.cols;
    for (uint i = thread_index; i < p.cols; i += THREADS) {
      const uint v = rank(src[i]);
      if ((n == 0 || better(last, last_id, v, i)) && better(v, i, best, id)) {
        best = v;
        id = i;
      }
    }
    for (ushort m = 1; m < 32; m *= 2) {
      const uint other = simd_shuffle_xor(best, m);
      const uint other_id = simd_shuffle_xor(id, m);
      if (better(other, other_id, best, id)) {
        best = other;
        id = other_id;
      }
    }
    if (lane == 0) {
      best_ranks[n % 2 * SIMDGROUPS + simdgroup] = best;
      best_ids[n % 2 * SIMDGROUPS + simdgroup] = id;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = n % 2 * SIMDGROUPS; s < (n % 2 + 1) * SIMDGROUPS; s++) {
      if (better(best_ranks[s], best_ids[s], best, id)) {
        best = best_ranks[s];
        id = best_ids[s];
      }
    }
    last = best;
    last_id = id;
    none = none || best == NO_NUMBER || id >= p.cols;
    if (thread_index == 0) {
      values[row * p.k + n] = none ? as_type<float>(0x7fc00000u) : src[id];
      ids[row * p.k + n] = none ? -1.0f : float(id);
    }
  }
}

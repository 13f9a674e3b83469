// The k largest of every row, largest first, of equal ones the leftmost first; k = 1 is argmax. What a sampler needs of logits, a token at a time.
//
// src f32 [rows, cols]; partial uint2 [rows, slices, k], rank and column; values, ids f32 [rows, k], an id being a column as a number, exact
// below 2^24. A slice is 2,048 columns. Values are compared by rank (prelude), so that NaN, -0 and denormals do not depend on the compiler.
// top_k_slices  grid: slices × rows. A threadgroup of 256 owns a slice, a simdgroup 256 columns of it, in registers: it takes out the best k
//               times. The eight lists meet in threadgroup memory, 2 KB, a barrier, where the first simdgroup merges them.
// top_k_merge   grid: rows. A simdgroup owns a row and merges its slices' lists, up to four a lane. No barriers.
// What is no number ranks above all, which costs nothing to see: a row with one has no largest, its values are NaN and its ids -1.
// Plain variant: top_k_plain.metal.
// Exact. Reference: device/cpu TopK. k in [1, min(cols, 32)]; at most 128 slices.

struct TopKParams {
  uint rows;
  uint cols;
  uint k;
};

constant constexpr uint SIMDGROUPS = 8;
constant constexpr uint EACH = 8;  // columns of a lane
constant constexpr uint SLICE = SIMDGROUPS * EACH * 32;
constant constexpr uint MOST = 32;  // k: a lane keeps one
constant constexpr uint LISTS = 4;
constant constexpr uint NOWHERE = 0xffffffffu;

kernel void top_k_slices(constant TopKParams &p [[buffer(0)]],
                         device const float *src [[buffer(3)]],
                         device uint2 *partial [[buffer(4)]],
                         uint2 tile [[threadgroup_position_in_grid]],
                         uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint ranks[SIMDGROUPS * MOST];
  threadgroup uint columns[SIMDGROUPS * MOST];
  src += ulong(tile.y) * p.cols;
  const uint first = tile.x * SLICE + simdgroup * EACH * 32 + lane;
  uint mine[EACH];
  uint best = 0;
  for (uint e = 0; e < EACH; e++) {
    mine[e] = first + 32 * e < p.cols ? rank(src[first + 32 * e]) : 0u;
    best = max(best, mine[e]);
  }
  uint2 kept = uint2(0u, NOWHERE);  // the lane's of what is found: number lane
  for (uint n = 0; n < p.k; n++) {
    const uint top = simd_max(best);
    uint column = NOWHERE;
    for (uint e = 0; e < EACH; e++) column = min(column, mine[e] == top ? first + 32 * e : NOWHERE);
    column = simd_min(column);
    if (lane == n) kept = uint2(top, column);
    best = 0;
    for (uint e = 0; e < EACH; e++) {
      if (first + 32 * e == column) mine[e] = 0;
      best = max(best, mine[e]);
    }
  }
  ranks[simdgroup * MOST + lane] = kept.x;
  columns[simdgroup * MOST + lane] = kept.y;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup != 0) return;
  uint at = lane < SIMDGROUPS ? 0u : p.k;  // in the lane's list, which ends at k
  for (uint n = 0; n < p.k; n++) {
    const uint head = at < p.k ? ranks[lane * MOST + at] : 0u;
    const uint head_column = at < p.k ? columns[lane * MOST + at] : NOWHERE;
    const uint top = simd_max(head);
    const uint column = simd_min(head == top ? head_column : NOWHERE);
    if (lane == n) kept = uint2(top, column);
    if (head_column == column) at++;
  }
  const uint slices = (p.cols + SLICE - 1) / SLICE;
  if (lane < p.k) partial[(ulong(tile.y) * slices + tile.x) * p.k + lane] = kept;
}

kernel void top_k_merge(constant TopKParams &p [[buffer(0)]],
                        device float *values [[buffer(1)]],
                        device float *ids [[buffer(2)]],
                        device const float *src [[buffer(3)]],
                        device const uint2 *partial [[buffer(4)]],
                        uint row [[threadgroup_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  const uint slices = (p.cols + SLICE - 1) / SLICE;
  partial += ulong(row) * slices * p.k;
  uint2 heads[LISTS];
  uint at[LISTS];
  for (uint j = 0; j < LISTS; j++) {
    at[j] = lane + 32 * j < slices ? 0u : p.k;
    heads[j] = at[j] < p.k ? partial[(lane + 32 * j) * p.k] : uint2(0u, NOWHERE);
  }
  uint first = 0;
  uint kept = 0;  // the lane's of the columns found
  for (uint n = 0; n < p.k; n++) {
    uint best = 0;
    for (uint j = 0; j < LISTS; j++) best = max(best, heads[j].x);
    best = simd_max(best);
    uint column = NOWHERE;
    for (uint j = 0; j < LISTS; j++) column = min(column, heads[j].x == best ? heads[j].y : NOWHERE);
    column = simd_min(column);
    if (n == 0) first = best;
    if (lane == n) kept = column;
    for (uint j = 0; j < LISTS; j++) {
      if (heads[j].y != column) continue;
      at[j]++;
      heads[j] = at[j] < p.k ? partial[(lane + 32 * j) * p.k + at[j]] : uint2(0u, NOWHERE);
    }
  }
  if (lane >= p.k) return;
  const bool none = first == NO_NUMBER || kept >= p.cols;
  values[row * p.k + lane] = none ? as_type<float>(0x7fc00000u) : src[ulong(row) * p.cols + kept];
  ids[row * p.k + lane] = none ? -1.0f : float(kept);
}

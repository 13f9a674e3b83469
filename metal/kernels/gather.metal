// Gather: dst[i] = src[indices[i]], whole rows. Picks the rows whose logits are wanted, and taps.
//
// dst f32 [rows, cols]; src f32 [·, cols]; indices i32 [rows]. A thread owns an element; x along the row, y the rows.
// No barriers. Exact. Its own plain variant. Reference: device/cpu Gather.

struct GatherParams {
  uint rows;
  uint cols;
};

kernel void gather(constant GatherParams &p [[buffer(0)]],
                   device float *dst [[buffer(1)]],
                   device const float *src [[buffer(2)]],
                   device const int *indices [[buffer(3)]],
                   uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.cols || at.y >= p.rows) return;
  dst[ulong(at.y) * p.cols + at.x] = src[ulong(indices[at.y]) * p.cols + at.x];
}

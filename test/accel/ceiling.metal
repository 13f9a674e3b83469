// What memory can give: every byte of a buffer is read once, 16 at a time.
//
// from uint4 [count]; sink uint [1], written only if the words of a thread add up to one value in 2^32, so that no read can be left out.
// Threads of the whole grid step through the buffer side by side. The measure that the rates of other kernels are shares of.

struct CeilingParams {
  uint count;
};

kernel void ceiling(constant CeilingParams &p [[buffer(0)]],
                    device uint *sink [[buffer(1)]],
                    device const uint4 *from [[buffer(2)]],
                    uint i [[thread_position_in_grid]],
                    uint threads [[threads_per_grid]]) {
  uint4 sum = uint4(0, 0, 0, 0);
  uint at = i;
  for (; at + 3 * threads < p.count; at += 4 * threads) {
    const uint4 a = from[at];
    const uint4 b = from[at + threads];
    const uint4 c = from[at + 2 * threads];
    const uint4 d = from[at + 3 * threads];
    sum += a + b + c + d;
  }
  for (; at < p.count; at += threads) sum += from[at];
  if (sum.x + sum.y + sum.z + sum.w == 0x9e3779b9u) sink[0] = i;
}

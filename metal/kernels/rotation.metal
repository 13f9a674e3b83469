// Rotation: the rotary table of every row, dst[row] = cos[n] | sin[n] of position·frequency[i].
//
// dst f32 [rows, 2n]; positions i32 [rows]; turns u64 [n]: frequency/2π as a fraction of 2^64. The product of position and fraction
// wraps at whole turns, so that the angle is reduced exactly at any position; an f32 angle would be off by 0.01 at 262,144.
// A thread owns a pair; x the pairs, y the rows. No barriers. Its own plain variant.
// Reference: device/cpu Rotation (float64); tolerance 1e-6: one rounding of an angle within ±π, then sin and cos.

struct RotationParams {
  uint rows;
  uint pairs;  // n
};

kernel void rotation(constant RotationParams &p [[buffer(0)]],
                     device float *dst [[buffer(1)]],
                     device const int *positions [[buffer(2)]],
                     device const ulong *turns [[buffer(3)]],
                     uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.pairs || at.y >= p.rows) return;
  const ulong turn = ulong(positions[at.y]) * turns[at.x];
  const int signed_turn = int(uint(turn >> 32));  // 2^32 to a turn, from -half to half
  const float angle = float(signed_turn) * 1.4629180792671596e-9f;  // 2π/2^32
  dst += ulong(at.y) * (2 * p.pairs) + at.x;
  dst[0] = precise::cos(angle);
  dst[p.pairs] = precise::sin(angle);
}

// Matrix product for 1 to 8 rows, decode and verification: dst[r, o] = Σ_i W[o, i]·x[r, i], or += with add.
//
// x f32 [rows, in]; dst f32 [rows, out]; W affine of 4 or 8 bits, or dense with in a multiple of 4; data aligned to 16 bytes.
// A simdgroup owns 4 outputs, a threadgroup of 64 owns 8. A lane takes 16 columns of every 512 (affine: they lie in one group,
// whose scale and bias are applied once) or 4 of every 128 (dense). Weights are read once for all rows. No barriers.
// Accumulation f32; activations stay f32. Reference: device/cpu Linear; tolerance 1e-4 of the row, order of summation.

constant uint BITS [[function_constant(0)]];
constant uint GROUP [[function_constant(1)]];
constant uint FORMAT [[function_constant(2)]];  // of scales and biases, or of dense data
constant uint ROWS [[function_constant(3)]];    // 1 to 8

struct LinearParams {
  uint rows;
  uint out;
  uint in;
  uint add;  // 1: dst += the product
};

constant constexpr uint OUTPUTS = 4;   // of a simdgroup
constant constexpr uint MAX_ROWS = 8;

// finish sums over the lanes and writes the 4 outputs of every row.
inline void finish(thread float (&sums)[OUTPUTS][MAX_ROWS], device float *dst, uint first, uint lane, constant LinearParams &p) {
  for (uint o = 0; o < OUTPUTS; o++) {
    for (uint r = 0; r < ROWS; r++) {
      const float total = simd_sum(sums[o][r]);
      if (lane == 0 && first + o < p.out) {
        device float *to = dst + ulong(r) * p.out + first + o;
        *to = p.add != 0 ? *to + total : total;
      }
    }
  }
}

kernel void linear_gemv_affine(constant LinearParams &p [[buffer(0)]],
                               device float *dst [[buffer(1)]],
                               device const float *x [[buffer(2)]],
                               device const uint *data [[buffer(3)]],
                               device const uchar *scales [[buffer(4)]],
                               device const uchar *biases [[buffer(5)]],
                               uint tile [[threadgroup_position_in_grid]],
                               uint lane [[thread_index_in_simdgroup]],
                               uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint first = (tile * 2 + simdgroup) * OUTPUTS;
  const ulong words = ulong(p.in) * BITS / 32;
  float sums[OUTPUTS][MAX_ROWS] = {};
  for (uint k = lane * 16; k < p.in; k += 512) {
    uint4 codes[OUTPUTS];
    float scale[OUTPUTS];
    float bias[OUTPUTS];
    for (uint o = 0; o < OUTPUTS; o++) {
      const ulong row = min(first + o, p.out - 1);  // past the end: read the last row, write nothing
      device const uint *w = data + row * words + k * BITS / 32;
      codes[o] = BITS == 8 ? *(device const uint4 *)w : uint4(w[0], w[1], 0, 0);
      const ulong group = row * (p.in / GROUP) + k / GROUP;
      scale[o] = load_float(scales, group, FORMAT);
      bias[o] = load_float(biases, group, FORMAT);
    }
    for (uint r = 0; r < ROWS; r++) {
      device const float4 *xr = (device const float4 *)(x + ulong(r) * p.in + k);
      const float4 x0 = xr[0];
      const float4 x1 = xr[1];
      const float4 x2 = xr[2];
      const float4 x3 = xr[3];
      const float4 s = x0 + x1 + x2 + x3;
      const float values = s.x + s.y + s.z + s.w;
      for (uint o = 0; o < OUTPUTS; o++) {
        float4 q0, q1, q2, q3;
        const uint4 c = codes[o];
        if (BITS == 8) {
          q0 = float4(float(c.x & 255u), float(c.x >> 8 & 255u), float(c.x >> 16 & 255u), float(c.x >> 24));
          q1 = float4(float(c.y & 255u), float(c.y >> 8 & 255u), float(c.y >> 16 & 255u), float(c.y >> 24));
          q2 = float4(float(c.z & 255u), float(c.z >> 8 & 255u), float(c.z >> 16 & 255u), float(c.z >> 24));
          q3 = float4(float(c.w & 255u), float(c.w >> 8 & 255u), float(c.w >> 16 & 255u), float(c.w >> 24));
        } else {
          q0 = float4(float(c.x & 15u), float(c.x >> 4 & 15u), float(c.x >> 8 & 15u), float(c.x >> 12 & 15u));
          q1 = float4(float(c.x >> 16 & 15u), float(c.x >> 20 & 15u), float(c.x >> 24 & 15u), float(c.x >> 28));
          q2 = float4(float(c.y & 15u), float(c.y >> 4 & 15u), float(c.y >> 8 & 15u), float(c.y >> 12 & 15u));
          q3 = float4(float(c.y >> 16 & 15u), float(c.y >> 20 & 15u), float(c.y >> 24 & 15u), float(c.y >> 28));
        }
        sums[o][r] += scale[o] * (dot(q0, x0) + dot(q1, x1) + dot(q2, x2) + dot(q3, x3)) + bias[o] * values;
      }
    }
  }
  finish(sums, dst, first, lane, p);
}

kernel void linear_gemv_dense(constant LinearParams &p [[buffer(0)]],
                              device float *dst [[buffer(1)]],
                              device const float *x [[buffer(2)]],
                              device const uchar *data [[buffer(3)]],
                              uint tile [[threadgroup_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint first = (tile * 2 + simdgroup) * OUTPUTS;
  float sums[OUTPUTS][MAX_ROWS] = {};
  for (uint k = lane * 4; k < p.in; k += 128) {
    float4 w[OUTPUTS];
    for (uint o = 0; o < OUTPUTS; o++) {
      const ulong at = ulong(min(first + o, p.out - 1)) * p.in + k;
      if (FORMAT == FORMAT_F32) {
        w[o] = ((device const float4 *)data)[at / 4];
      } else {
        const ushort4 h = ((device const ushort4 *)data)[at / 4];
        if (FORMAT == FORMAT_F16) w[o] = float4(float(as_type<half>(h.x)), float(as_type<half>(h.y)), float(as_type<half>(h.z)), float(as_type<half>(h.w)));
        else w[o] = float4(as_type<float>(uint(h.x) << 16), as_type<float>(uint(h.y) << 16), as_type<float>(uint(h.z) << 16), as_type<float>(uint(h.w) << 16));
      }
    }
    for (uint r = 0; r < ROWS; r++) {
      const float4 v = *(device const float4 *)(x + ulong(r) * p.in + k);
      for (uint o = 0; o < OUTPUTS; o++) sums[o][r] += dot(w[o], v);
    }
  }
  finish(sums, dst, first, lane, p);
}

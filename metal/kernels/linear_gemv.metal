// Matrix products of one input for 1 to 8 rows, decode and verification: dst_q[r, o] = Σ_i W_q[o, i]·x[r, i], or += with add, for up to
// four products q; or, gated, dst_0 = silu(gate)·up and dst_1 = up, with gate and up the products 0 and 1.
//
// x f32 [rows, in]; dst_q f32 [rows, out_q]; W_q all affine of 4 or 8 bits by one group, or all dense of one format with in a multiple
// of 4; data aligned to 16 bytes, of less than 2^32 words. The host binds product 0 again where there are fewer than four.
// A simdgroup owns 4 outputs of one product (gated: 2 of gate and the same 2 of up), a threadgroup of 64 owns 8 (gated: 4 and 4).
// Products lie one after another along the grid. A lane takes 16 columns of every 512 (affine: they lie in one group,
// whose scale and bias are applied once) or 4 of every 128 (dense). Weights are read once for all rows, a step ahead of
// their use. No barriers; split, where rows are long, the simdgroups of a threadgroup share 4 outputs and meet in threadgroup
// memory, 128 B: one barrier.
// Plain variant: linear_plain.metal.
// Accumulation f32; activations stay f32. Reference: device/cpu Linear, then SwiGLU; tolerance 1e-4 of the row, order of summation.

constant uint BITS [[function_constant(0)]];
constant uint GROUP [[function_constant(1)]];
constant uint FORMAT [[function_constant(2)]];  // of scales and biases, or of dense data
constant uint ROWS [[function_constant(3)]];    // 1 to 8
constant uint GATED [[function_constant(4)]];   // 1: products 0 and 1 are gate and up
constant uint SPLIT [[function_constant(5)]];   // 1, affine only: the two simdgroups share 4 outputs and take columns in turn

struct LinearGemvParams {
  uint in;
  uint add;    // bit q: dst_q += the product
  uint tile1;  // where along the grid products 1 to 3 begin; beyond the grid where there is none
  uint tile2;
  uint tile3;
  uint out0;
  uint out1;
  uint out2;
  uint out3;
};

constant constexpr uint OUTPUTS = 4;  // of a simdgroup
constant constexpr uint MAX_ROWS = 8;

// product is which one a threadgroup works on. Gated: 0, whose tiles are also those of 1.
inline uint product(uint tile, constant LinearGemvParams &p) {
  return (tile >= p.tile1 ? 1u : 0u) + (tile >= p.tile2 ? 1u : 0u) + (tile >= p.tile3 ? 1u : 0u);
}

inline uint outputs(uint q, constant LinearGemvParams &p) { return q == 0 ? p.out0 : q == 1 ? p.out1 : q == 2 ? p.out2 : p.out3; }

// first_output is a simdgroup's first output in its product.
inline uint first_output(uint q, uint tile, uint simdgroup, constant LinearGemvParams &p) {
  const uint begin = q == 0 ? 0 : q == 1 ? p.tile1 : q == 2 ? p.tile2 : p.tile3;
  return (SPLIT != 0 ? tile - begin : (tile - begin) * 2 + simdgroup) * (GATED != 0 ? 2 : OUTPUTS);
}

// weight_row is the row of its matrix for the o-th sum of a simdgroup; past the end it reads the last row, and nothing is written.
inline uint weight_row(uint o, uint first, uint out) { return min(first + (GATED != 0 ? o % 2 : o), out - 1); }

// join adds what the second simdgroup summed to the first's, split: a lane of the first ends with the second's total in its own place.
inline void join(thread float (&sums)[OUTPUTS][MAX_ROWS], threadgroup float *others, uint lane, uint simdgroup) {
  for (uint r = 0; r < ROWS; r++) {
    for (uint o = 0; o < OUTPUTS; o++) {
      const float total = simd_sum(sums[o][r]);
      if (simdgroup == 1 && lane == 0) others[r * OUTPUTS + o] = total;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint r = 0; r < ROWS; r++)
    for (uint o = 0; o < OUTPUTS; o++)
      if (lane == 0) sums[o][r] += others[r * OUTPUTS + o];
}

// finish sums over the lanes and writes the outputs of every row. up is dst_1 where gated.
inline void finish(thread float (&sums)[OUTPUTS][MAX_ROWS], device float *dst, device float *up, uint first, uint out, bool add, uint lane) {
  for (uint r = 0; r < ROWS; r++) {
    float totals[OUTPUTS];
    for (uint o = 0; o < OUTPUTS; o++) totals[o] = simd_sum(sums[o][r]);
    if (lane != 0) continue;
    if (GATED != 0) {
      for (uint o = 0; o < 2; o++) {
        if (first + o >= out) continue;
        const ulong at = ulong(r) * out + first + o;
        up[at] = totals[2 + o];
        dst[at] = silu(totals[o]) * totals[2 + o];
      }
      continue;
    }
    for (uint o = 0; o < OUTPUTS; o++) {
      if (first + o >= out) continue;
      device float *to = dst + ulong(r) * out + first + o;
      *to = add ? *to + totals[o] : totals[o];
    }
  }
}

// Weights are what a simdgroup reads: the first two sums are of one matrix, the last two of the same or, gated, of the other.
struct Weights {
  device const uint *data[2];
  device const uchar *scales[2];
  device const uchar *biases[2];
  uint word[OUTPUTS];   // where each row begins in data
  uint group[OUTPUTS];  // and in scales and biases
};

// Step is a lane's 16 columns of the four rows.
struct Step {
  uint4 codes[OUTPUTS];
  float scale[OUTPUTS];
  float bias[OUTPUTS];
};

inline void fetch(thread Step &to, thread const Weights &w, uint k) {
  for (uint o = 0; o < OUTPUTS; o++) {
    device const uint *c = w.data[o / 2] + (w.word[o] + k * BITS / 32);
    if (BITS == 8) {
      to.codes[o] = *(device const uint4 *)c;
    } else {
      const uint2 both = *(device const uint2 *)c;
      to.codes[o] = uint4(both.x, both.y, 0, 0);
    }
    const uint group = w.group[o] + k / GROUP;
    to.scale[o] = load_float(w.scales[o / 2], group, FORMAT);
    to.bias[o] = load_float(w.biases[o / 2], group, FORMAT);
  }
}

// bytes are the four codes of a word. nibbles are four codes of a half, each times 16 to the power of its place, as they lie: c is the half
// as the lower bits of the float 2^23, so that a mask makes a number of a code.
inline float4 bytes(uint c) { return float4(number(c & 255u), number(c >> 8 & 255u), number(c >> 16 & 255u), number(c >> 24)); }
inline float4 nibbles(uint c) {
  return float4(as_type<float>(c & 0x4b00000fu), as_type<float>(c & 0x4b0000f0u), as_type<float>(c & 0x4b000f00u), as_type<float>(c & 0x4b00f000u)) - 8388608.0f;
}

kernel void linear_gemv_affine(constant LinearGemvParams &p [[buffer(0)]],
                               device float *dst0 [[buffer(1)]],
                               device float *dst1 [[buffer(2)]],
                               device float *dst2 [[buffer(3)]],
                               device float *dst3 [[buffer(4)]],
                               device const float *x [[buffer(5)]],
                               device const uint *data0 [[buffer(6)]],
                               device const uint *data1 [[buffer(7)]],
                               device const uint *data2 [[buffer(8)]],
                               device const uint *data3 [[buffer(9)]],
                               device const uchar *scales0 [[buffer(10)]],
                               device const uchar *scales1 [[buffer(11)]],
                               device const uchar *scales2 [[buffer(12)]],
                               device const uchar *scales3 [[buffer(13)]],
                               device const uchar *biases0 [[buffer(14)]],
                               device const uchar *biases1 [[buffer(15)]],
                               device const uchar *biases2 [[buffer(16)]],
                               device const uchar *biases3 [[buffer(17)]],
                               uint tile [[threadgroup_position_in_grid]],
                               uint lane [[thread_index_in_simdgroup]],
                               uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint q = product(tile, p);
  const uint out = outputs(q, p);
  const uint first = first_output(q, tile, simdgroup, p);
  threadgroup float others[OUTPUTS * MAX_ROWS];
  Weights w;
  for (uint i = 0; i < 2; i++) {
    const uint from = GATED != 0 ? i : q;
    w.data[i] = from == 0 ? data0 : from == 1 ? data1 : from == 2 ? data2 : data3;
    w.scales[i] = from == 0 ? scales0 : from == 1 ? scales1 : from == 2 ? scales2 : scales3;
    w.biases[i] = from == 0 ? biases0 : from == 1 ? biases1 : from == 2 ? biases2 : biases3;
  }
  for (uint o = 0; o < OUTPUTS; o++) {
    w.word[o] = weight_row(o, first, out) * (p.in / 32 * BITS);
    w.group[o] = weight_row(o, first, out) * (p.in / GROUP);
  }
  const float4 places = float4(1.0f, 1.0f / 16.0f, 1.0f / 256.0f, 1.0f / 4096.0f);  // takes back what nibbles leave in
  float sums[OUTPUTS][MAX_ROWS] = {};
  const uint begin = lane * 16 + (SPLIT != 0 ? simdgroup * 512 : 0);
  const uint step = SPLIT != 0 ? 1024 : 512;
  Step next;
  fetch(next, w, begin < p.in ? begin : 0);
  for (uint k = begin; k < p.in; k += step) {
    const Step now = next;
    fetch(next, w, k + step < p.in ? k + step : k);  // under way while this step is multiplied
    for (uint r = 0; r < ROWS; r++) {
      device const float4 *xr = (device const float4 *)(x + ulong(r) * p.in + k);
      float4 x0 = xr[0];
      float4 x1 = xr[1];
      float4 x2 = xr[2];
      float4 x3 = xr[3];
      const float4 s = x0 + x1 + x2 + x3;
      const float values = s.x + s.y + s.z + s.w;
      if (BITS == 4) {
        x0 *= places;
        x1 *= places;
        x2 *= places;
        x3 *= places;
      }
      for (uint o = 0; o < OUTPUTS; o++) {
        float4 q0, q1, q2, q3;
        const uint4 c = now.codes[o];
        if (BITS == 8) {
          q0 = bytes(c.x);
          q1 = bytes(c.y);
          q2 = bytes(c.z);
          q3 = bytes(c.w);
        } else {
          q0 = nibbles((c.x & 0xffffu) | 0x4b000000u);
          q1 = nibbles(c.x >> 16 | 0x4b000000u);
          q2 = nibbles((c.y & 0xffffu) | 0x4b000000u);
          q3 = nibbles(c.y >> 16 | 0x4b000000u);
        }
        float4 products = q0 * x0;
        products += q1 * x1;
        products += q2 * x2;
        products += q3 * x3;
        sums[o][r] += now.scale[o] * (products.x + products.y + products.z + products.w) + now.bias[o] * values;
      }
    }
  }
  if (SPLIT != 0) join(sums, others, lane, simdgroup);
  if (SPLIT != 0 && simdgroup != 0) return;
  finish(sums, q == 0 ? dst0 : q == 1 ? dst1 : q == 2 ? dst2 : dst3, dst1, first, out, (p.add >> q & 1u) != 0, lane);
}

kernel void linear_gemv_dense(constant LinearGemvParams &p [[buffer(0)]],
                              device float *dst0 [[buffer(1)]],
                              device float *dst1 [[buffer(2)]],
                              device float *dst2 [[buffer(3)]],
                              device float *dst3 [[buffer(4)]],
                              device const float *x [[buffer(5)]],
                              device const uchar *data0 [[buffer(6)]],
                              device const uchar *data1 [[buffer(7)]],
                              device const uchar *data2 [[buffer(8)]],
                              device const uchar *data3 [[buffer(9)]],
                              uint tile [[threadgroup_position_in_grid]],
                              uint lane [[thread_index_in_simdgroup]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint q = product(tile, p);
  const uint out = outputs(q, p);
  const uint first = first_output(q, tile, simdgroup, p);
  float sums[OUTPUTS][MAX_ROWS] = {};
  for (uint k = lane * 4; k < p.in; k += 128) {
    float4 w[OUTPUTS];
    for (uint o = 0; o < OUTPUTS; o++) {
      const uint from = GATED != 0 ? o / 2 : q;
      device const uchar *data = from == 0 ? data0 : from == 1 ? data1 : from == 2 ? data2 : data3;
      const ulong at = ulong(weight_row(o, first, out)) * p.in + k;
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
  finish(sums, q == 0 ? dst0 : q == 1 ? dst1 : q == 2 ? dst2 : dst3, dst1, first, out, (p.add >> q & 1u) != 0, lane);
}

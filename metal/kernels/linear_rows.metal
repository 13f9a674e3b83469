// Matrix products of one input for 3 to 8 rows, verification and batches, by simdgroup matrices: dst_q[r, o] = Σ_i W_q[o, i]·x[r, i], or
// += with add, for up to four products q; or, gated, dst_0 = silu(gate)·up and dst_1 = up, with gate and up the products 0 and 1.
//
// x f32 [rows, in]; dst_q f32 [rows, out_q]; W_q affine of 4 bits by one group, a multiple of 64; data aligned to 8 bytes, of less
// than 2^32 words. The host binds product 0 again where there are fewer than four.
// rows_half runs first, a threadgroup of 256 for 64 columns, a simdgroup a row: x becomes 16-bit operands [in/64, 8 matrices, 8 rows,
// 8 columns], rows past the end zero, beside the sums of its 64 columns as operands and as they are, f32 [in/64, 8 rows, 2].
// Then a threadgroup of 256 owns 16 outputs of one product (gated: 8 of gate and the same 8 of up); products lie one after another
// along the grid. Its 8 simdgroups take 128 columns in turn and meet in threadgroup memory at the end: sums 4,096 B, numbers 256 B, two
// barriers. A code q goes into an operand as 1024 + q, by a mask; a word of eight codes gives the columns 0 and 4, 1 and 5, 2 and
// 6, 3 and 7 of four matrices, and rows_half puts x in the same order. With c the middle code, weights are s·(q - c) + (b + c·s): a group's sum
// of products is multiplied by s in f32, s·(1024 + c)·Σx of the operands is taken off, and (b + c·s)·Σx added from x as it is.
// Which elements of a matrix a lane holds is found out by loading a matrix of numbers; the two lie side by side in a row.
// Plain variant: linear_gemv.metal.
// Operands f16, accumulation f32. A finite activation that becomes an infinite operand sets STATUS_RANGE.
// Reference: device/cpu Linear, then SwiGLU; tolerance 2e-3 of the row's largest value: x is rounded to 11 bits.

constant uint FORMAT [[function_constant(0)]];  // of scales and biases
constant uint GROUP [[function_constant(1)]];
constant uint ROWS [[function_constant(2)]];   // 3 to 8
constant uint GATED [[function_constant(3)]];  // 1: products 0 and 1 are gate and up

struct LinearRowsParams {
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

constant constexpr uint SIMDGROUPS = 8;
constant constexpr uint TILES = 2;      // of 8 outputs, of a simdgroup
constant constexpr uint STEP = 2;       // groups of 64 columns that a simdgroup reads ahead
constant constexpr float MIDDLE = 8.0f;  // c

// Weights are what a lane reads: of each tile, its row of the matrix.
struct Weights {
  device const uint *data[TILES];
  device const uchar *scales[TILES];
  device const uchar *biases[TILES];
  uint word[TILES];   // where the lane's part of the row begins in data
  uint group[TILES];  // where the row begins in scales and biases
};

// Coded is a lane's 16 columns of each 64.
struct Coded {
  uint2 codes[TILES][STEP];
  float scale[TILES][STEP];
  float bias[TILES][STEP];
};

// fetch reads the columns of STEP times 64 from group g on; past the end it reads the last ones, and nothing uses them.
inline void fetch(thread Coded &to, thread const Weights &w, uint g, uint groups) {
  for (uint i = 0; i < TILES; i++) {
    for (uint s = 0; s < STEP; s++) {
      const uint at = min(g + s, groups - 1);
      to.codes[i][s] = *(device const uint2 *)(w.data[i] + w.word[i] + at * 8);
      to.scale[i][s] = load_float(w.scales[i], w.group[i] + at * 64 / GROUP, FORMAT);
      to.bias[i][s] = load_float(w.biases[i], w.group[i] + at * 64 / GROUP, FORMAT);
    }
  }
}

// rows_half makes the operands and the sums.
kernel void rows_half(constant LinearRowsParams &p [[buffer(0)]],
                      device half *tiles [[buffer(1)]],
                      device float *totals [[buffer(2)]],
                      device const float *x [[buffer(3)]],
                      device atomic_uint *status [[buffer(4)]],
                      uint group [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]],
                      uint row [[simdgroup_index_in_threadgroup]]) {
  bool beyond = false;
  float rounded = 0.0f;
  float as_it_is = 0.0f;
  for (uint e = 0; e < 2; e++) {
    const uint column = lane * 2 + e;
    const float v = row < ROWS ? x[ulong(row) * p.in + group * 64 + column] : 0.0f;
    const half h = half(v);
    beyond = beyond || (isfinite(v) && !isfinite(float(h)));
    rounded += float(h);
    as_it_is += v;
    const uint place = column % 16;  // among the 16 columns of a lane: its matrix, and its column there
    tiles[((group * 8 + place / 8 * 4 + place % 4) * 8 + row) * 8 + column / 16 * 2 + place % 8 / 4] = h;
  }
  rounded = simd_sum(rounded);
  as_it_is = simd_sum(as_it_is);
  if (lane == 0) *(device float2 *)(totals + (group * 8 + row) * 2) = float2(rounded, as_it_is);
  if (beyond) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
}

kernel void linear_rows(constant LinearRowsParams &p [[buffer(0)]],
                        device float *dst0 [[buffer(1)]],
                        device float *dst1 [[buffer(2)]],
                        device float *dst2 [[buffer(3)]],
                        device float *dst3 [[buffer(4)]],
                        device const half *tiles [[buffer(5)]],
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
                        device const float *totals [[buffer(18)]],
                        uint tile [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float numbers[64];
  threadgroup float parts[SIMDGROUPS * 64 * TILES];
  const uint q = (tile >= p.tile1 ? 1u : 0u) + (tile >= p.tile2 ? 1u : 0u) + (tile >= p.tile3 ? 1u : 0u);
  const uint begin = q == 0 ? 0 : q == 1 ? p.tile1 : q == 2 ? p.tile2 : p.tile3;
  const uint out = q == 0 ? p.out0 : q == 1 ? p.out1 : q == 2 ? p.out2 : p.out3;
  const uint first = (tile - begin) * (GATED != 0 ? 8 : 16);
  if (thread_index < 64) numbers[thread_index] = float(thread_index);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 layout;
  simdgroup_load(layout, numbers, 8);
  const uint element = uint(layout.thread_elements()[0]);
  const uint row = element / 8;
  const uint quarter = element % 8 / 2;
  Weights w;
  for (uint i = 0; i < TILES; i++) {
    const uint from = GATED != 0 ? i : q;
    w.data[i] = from == 0 ? data0 : from == 1 ? data1 : from == 2 ? data2 : data3;
    w.scales[i] = from == 0 ? scales0 : from == 1 ? scales1 : from == 2 ? scales2 : scales3;
    w.biases[i] = from == 0 ? biases0 : from == 1 ? biases1 : from == 2 ? biases2 : biases3;
    const uint o = min(first + (GATED != 0 ? 0 : i * 8) + row, out - 1);
    w.word[i] = o * (p.in / 8) + quarter * 2;
    w.group[i] = o * (p.in / GROUP);
  }
  simdgroup_float8x8 sums[TILES];
  for (uint i = 0; i < TILES; i++) sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  const uint groups = p.in / 64;
  Coded next;
  fetch(next, w, simdgroup * STEP, groups);
  for (uint g = simdgroup * STEP; g < groups; g += SIMDGROUPS * STEP) {
    const Coded now = next;
    fetch(next, w, g + SIMDGROUPS * STEP, groups);
    for (uint s = 0; s < STEP; s++) {
      if (g + s >= groups) break;
      simdgroup_float8x8 products[TILES];
      for (uint i = 0; i < TILES; i++) products[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      for (uint m = 0; m < 8; m++) {
        simdgroup_half8x8 b;
        simdgroup_load(b, tiles + ((g + s) * 8 + m) * 64, 8, ulong2(0, 0), true);
        for (uint i = 0; i < TILES; i++) {
          const uint four = (m < 4 ? now.codes[i][s].x : now.codes[i][s].y) >> (m % 4 * 4);
          const half2 h = as_type<half2>((four & 0x000f000fu) | 0x64006400u);
          simdgroup_half8x8 a;
          a.thread_elements()[0] = h.x;
          a.thread_elements()[1] = h.y;
          simdgroup_multiply_accumulate(products[i], a, b, products[i]);
        }
      }
      const float4 total = *(device const float4 *)(totals + ((g + s) * 8 + quarter * 2) * 2);
      for (uint i = 0; i < TILES; i++) {
        const float scale = now.scale[i][s];
        const float bias = now.bias[i][s] + MIDDLE * scale;
        sums[i].thread_elements()[0] += scale * (products[i].thread_elements()[0] - (1024.0f + MIDDLE) * total.x) + bias * total.y;
        sums[i].thread_elements()[1] += scale * (products[i].thread_elements()[1] - (1024.0f + MIDDLE) * total.z) + bias * total.w;
      }
    }
  }
  for (uint i = 0; i < TILES; i++) simdgroup_store(sums[i], parts + simdgroup * 64 * TILES + i * 64, 8);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index >= (GATED != 0 ? 64u : 128u)) return;
  float total = 0.0f;
  for (uint s = 0; s < SIMDGROUPS; s++) total += parts[s * 64 * TILES + thread_index];
  const uint r = thread_index % 8;
  const uint o = first + thread_index / 8;
  if (r >= ROWS || o >= out) return;
  const ulong at = ulong(r) * out + o;
  if (GATED != 0) {
    float up = 0.0f;
    for (uint s = 0; s < SIMDGROUPS; s++) up += parts[s * 64 * TILES + 64 + thread_index];
    dst1[at] = up;
    dst0[at] = silu(total) * up;
    return;
  }
  device float *to = (q == 0 ? dst0 : q == 1 ? dst1 : q == 2 ? dst2 : dst3) + at;
  *to = (p.add >> q & 1u) != 0 ? *to + total : total;
}

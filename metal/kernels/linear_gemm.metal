// Matrix product for many rows, prefill: dst[r, o] = Σ_i W[o, i]·x[r, i], or += with add, by simdgroup matrices.
//
// x f32 [rows, in]; dst f32 [rows, stride], of which out columns are written; W affine of 4 or 8 bits, or dense; in a multiple of 32 (affine always is).
// A threadgroup of 128 owns 32 rows × 32 outputs; its 4 simdgroups own 16 × 16 each. Per 32 columns: all threads turn a tile of x and
// one of W into 16-bit operands in threadgroup memory, a barrier, each simdgroup multiplies, a barrier before the tiles are
// written again. At the end the sums go through the same memory, so that edges and add need no knowledge of a matrix's lanes.
// Affine weights are s·(q - c) + (b + c·s), c the middle code. The operand is q - c, which 16 bits hold exactly; a group's sum is
// multiplied by s in f32, and (b + c·s)·Σx is added from x as it is. So a bias far from zero, whose share may cancel in a row, costs no
// digits. Which elements of a matrix a lane holds is found out by loading a matrix of row numbers: Metal does not say.
// Threadgroup memory: tiles 2·32·40·2 = 5,120 B (rows of 40 elements, so that rows of a tile begin in different banks), sums 4,608 B,
// numbers, scales, offsets and sums of x 640 B.
// Plain variant: linear_plain.metal.
// Operands f16 (or bf16: the _bf16 instances), accumulation f32. A finite activation that becomes an infinite operand sets STATUS_RANGE.
// Reference: device/cpu Linear; tolerance 2e-3 of the row's largest value: x, and a dense W, are rounded to 11 bits (bf16: 8 bits,
// 1.6e-2).

constant uint BITS [[function_constant(0)]];
constant uint GROUP [[function_constant(1)]];
constant uint FORMAT [[function_constant(2)]];  // of scales and biases, or of dense data

struct LinearParams {
  uint rows;
  uint out;
  uint in;
  uint add;     // 1: dst += the product
  uint stride;  // columns of dst
};

constant constexpr uint TILE = 32;     // rows, outputs and columns of a step
constant constexpr uint STRIDE = 40;   // elements of a tile's row
constant constexpr uint SUM_STRIDE = 36;

// load_x turns 8 columns of a row of x into operands and adds them to sum; rows past the end become zero. Returns whether a value did
// not fit.
template <typename T>
inline bool load_x(threadgroup T *to, device const float *x, uint row, uint k, constant LinearParams &p, thread float &sum) {
  bool beyond = false;
  for (uint i = 0; i < 8; i++) {
    const float v = row < p.rows ? x[ulong(row) * p.in + k + i] : 0.0f;
    to[i] = T(v);
    sum += v;
    beyond = beyond || (isfinite(v) && !isfinite(float(to[i])));
  }
  return beyond;
}

// multiply adds the product of the two tiles to a simdgroup's sums.
template <typename T>
inline void multiply(thread simdgroup_float8x8 (&sums)[2][2], threadgroup const T *xs, threadgroup const T *ws, uint simdgroup) {
  const uint row = simdgroup / 2 * 16;
  const uint out = simdgroup % 2 * 16;
  for (uint k = 0; k < TILE; k += 8) {
    simdgroup_matrix<T, 8, 8> a[2];
    simdgroup_matrix<T, 8, 8> b[2];
    for (uint i = 0; i < 2; i++) {
      simdgroup_load(a[i], xs + (row + 8 * i) * STRIDE + k, STRIDE);
      simdgroup_load(b[i], ws + (out + 8 * i) * STRIDE + k, STRIDE, ulong2(0, 0), true);
    }
    for (uint i = 0; i < 2; i++)
      for (uint j = 0; j < 2; j++) simdgroup_multiply_accumulate(sums[i][j], a[i], b[j], sums[i][j]);
  }
}

// clear zeroes a simdgroup's sums.
inline void clear(thread simdgroup_float8x8 (&sums)[2][2]) {
  for (uint i = 0; i < 2; i++)
    for (uint j = 0; j < 2; j++) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
}

// store brings a simdgroup's sums into threadgroup memory.
inline void store(thread simdgroup_float8x8 (&sums)[2][2], threadgroup float *to, uint simdgroup) {
  const uint row = simdgroup / 2 * 16;
  const uint out = simdgroup % 2 * 16;
  for (uint i = 0; i < 2; i++)
    for (uint j = 0; j < 2; j++) simdgroup_store(sums[i][j], to + (row + 8 * i) * SUM_STRIDE + out + 8 * j, SUM_STRIDE);
}

// write brings the tile of sums to dst.
inline void write(threadgroup const float *from, device float *dst, uint2 tile, uint thread_index, constant LinearParams &p) {
  for (uint i = thread_index; i < TILE * TILE; i += 128) {
    const uint row = tile.y * TILE + i / TILE;
    const uint out = tile.x * TILE + i % TILE;
    if (row >= p.rows || out >= p.out) continue;
    const float sum = from[i / TILE * SUM_STRIDE + i % TILE];
    device float *to = dst + ulong(row) * p.stride + out;
    *to = p.add != 0 ? *to + sum : sum;
  }
}

template <typename T>
kernel void linear_gemm_affine(constant LinearParams &p [[buffer(0)]],
                               device float *dst [[buffer(1)]],
                               device const float *x [[buffer(2)]],
                               device const uint *data [[buffer(3)]],
                               device const uchar *scales [[buffer(4)]],
                               device const uchar *biases [[buffer(5)]],
                               device atomic_uint *status [[buffer(6)]],
                               uint2 tile [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]],
                               uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup T xs[TILE * STRIDE];
  threadgroup T ws[TILE * STRIDE];
  threadgroup float result[TILE * SUM_STRIDE];
  threadgroup float numbers[64];
  threadgroup float scale_of[TILE];   // of an output, in this group
  threadgroup float offset_of[TILE];  // its bias + middle·scale
  threadgroup float sum_of[TILE];     // of a row of x over this group
  const uint part = thread_index % 4 * 8;  // this thread's 8 columns
  const uint line = thread_index / 4;      // and its row of both tiles
  const uint row = tile.y * TILE + line;
  const uint out = tile.x * TILE + line;
  const ulong words = ulong(p.in) * BITS / 32;
  const uint mask = (1u << BITS) - 1u;
  const float middle = float(1u << (BITS - 1));
  if (thread_index < 64) numbers[thread_index] = float(thread_index / 8);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 rows;
  simdgroup_float8x8 columns;
  simdgroup_load(rows, numbers, 8);
  simdgroup_load(columns, numbers, 8, ulong2(0, 0), true);
  simdgroup_float8x8 sums[2][2];
  simdgroup_float8x8 parts[2][2];  // of a group
  clear(sums);
  bool beyond = false;
  for (uint from = 0; from < p.in; from += GROUP) {
    float scale = 0.0f;
    float bias = 0.0f;
    if (out < p.out) {
      const ulong group = ulong(out) * (p.in / GROUP) + from / GROUP;
      scale = load_float(scales, group, FORMAT);
      bias = load_float(biases, group, FORMAT);
    }
    float sum = 0.0f;
    clear(parts);
    for (uint k = from; k < from + GROUP; k += TILE) {
      beyond = load_x<T>(xs + line * STRIDE + part, x, row, k + part, p, sum) || beyond;
      uint low = 0;
      uint high = 0;
      if (out < p.out) {
        device const uint *w = data + ulong(out) * words + (k + part) * BITS / 32;
        low = w[0];
        high = BITS == 8 ? w[1] : low >> 16;
      }
      for (uint i = 0; i < 4; i++) {
        ws[line * STRIDE + part + i] = T(number(low >> (i * BITS) & mask) - middle);
        ws[line * STRIDE + part + 4 + i] = T(number(high >> (i * BITS) & mask) - middle);
      }
      const bool last = k + TILE == from + GROUP;
      if (last) {
        sum += simd_shuffle_xor(sum, ushort(1));
        sum += simd_shuffle_xor(sum, ushort(2));
        if (part == 0) {
          sum_of[line] = sum;
          scale_of[line] = scale;
          offset_of[line] = bias + middle * scale;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      multiply<T>(parts, xs, ws, simdgroup);
      if (last) {
        for (uint e = 0; e < 2; e++) {
          const uint r = simdgroup / 2 * 16 + uint(rows.thread_elements()[e]);
          const uint o = simdgroup % 2 * 16 + uint(columns.thread_elements()[e]);
          for (uint i = 0; i < 2; i++)
            for (uint j = 0; j < 2; j++)
              sums[i][j].thread_elements()[e] +=
                  scale_of[o + 8 * j] * parts[i][j].thread_elements()[e] + offset_of[o + 8 * j] * sum_of[r + 8 * i];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
  if (beyond) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
  store(sums, result, simdgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  write(result, dst, tile, thread_index, p);
}

template <typename T>
kernel void linear_gemm_dense(constant LinearParams &p [[buffer(0)]],
                              device float *dst [[buffer(1)]],
                              device const float *x [[buffer(2)]],
                              device const uchar *data [[buffer(3)]],
                              device atomic_uint *status [[buffer(6)]],
                              uint2 tile [[threadgroup_position_in_grid]],
                              uint thread_index [[thread_index_in_threadgroup]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup T xs[TILE * STRIDE];
  threadgroup T ws[TILE * STRIDE];
  threadgroup float result[TILE * SUM_STRIDE];
  const uint part = thread_index % 4 * 8;
  const uint line = thread_index / 4;
  const uint row = tile.y * TILE + line;
  const uint out = tile.x * TILE + line;
  simdgroup_float8x8 sums[2][2];
  clear(sums);
  bool beyond = false;
  float unused = 0.0f;
  for (uint k = 0; k < p.in; k += TILE) {
    beyond = load_x<T>(xs + line * STRIDE + part, x, row, k + part, p, unused) || beyond;
    for (uint i = 0; i < 8; i++)
      ws[line * STRIDE + part + i] = T(out < p.out ? load_float(data, ulong(out) * p.in + k + part + i, FORMAT) : 0.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    multiply<T>(sums, xs, ws, simdgroup);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (beyond) atomic_fetch_or_explicit(status, STATUS_RANGE, memory_order_relaxed);
  store(sums, result, simdgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  write(result, dst, tile, thread_index, p);
}

template [[host_name("linear_gemm_affine_f16")]] kernel void linear_gemm_affine<half>(
    constant LinearParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *x [[buffer(2)]],
    device const uint *data [[buffer(3)]], device const uchar *scales [[buffer(4)]], device const uchar *biases [[buffer(5)]],
    device atomic_uint *status [[buffer(6)]], uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("linear_gemm_affine_bf16")]] kernel void linear_gemm_affine<bfloat>(
    constant LinearParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *x [[buffer(2)]],
    device const uint *data [[buffer(3)]], device const uchar *scales [[buffer(4)]], device const uchar *biases [[buffer(5)]],
    device atomic_uint *status [[buffer(6)]], uint2 tile [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("linear_gemm_dense_f16")]] kernel void linear_gemm_dense<half>(
    constant LinearParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *x [[buffer(2)]],
    device const uchar *data [[buffer(3)]], device atomic_uint *status [[buffer(6)]],
    uint2 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("linear_gemm_dense_bf16")]] kernel void linear_gemm_dense<bfloat>(
    constant LinearParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *x [[buffer(2)]],
    device const uchar *data [[buffer(3)]], device atomic_uint *status [[buffer(6)]],
    uint2 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]);

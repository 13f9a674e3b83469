// Matrix product, plain: dst[r, o] = Σ_i W[o, i]·x[r, i], or += with add. The variant behind linear_gemv and linear_gemm,
// and the one for widths of code that they do not take (2, 3, 5, 6 bit).
//
// x f32 [rows, in]; dst f32 [rows, stride], of which out columns are written; W as in embed.metal. A thread owns an output; x along out, y the rows.
// Accumulation f32, per group scale·(Σ q·x) + bias·(Σ x). Reference: device/cpu Linear; tolerance 1e-4 of the row.

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

kernel void linear_plain_affine(constant LinearParams &p [[buffer(0)]],
                                device float *dst [[buffer(1)]],
                                device const float *x [[buffer(2)]],
                                device const uint *data [[buffer(3)]],
                                device const uchar *scales [[buffer(4)]],
                                device const uchar *biases [[buffer(5)]],
                                uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.out || at.y >= p.rows) return;
  x += ulong(at.y) * p.in;
  data += ulong(at.x) * (ulong(p.in) * BITS / 32);
  const ulong group = ulong(at.x) * (p.in / GROUP);
  float total = 0.0f;
  for (uint g = 0; g < p.in / GROUP; g++) {
    float codes = 0.0f;
    float values = 0.0f;
    for (uint i = g * GROUP; i < (g + 1) * GROUP; i++) {
      codes += float(load_code(data, i, BITS)) * x[i];
      values += x[i];
    }
    total += load_float(scales, group + g, FORMAT) * codes + load_float(biases, group + g, FORMAT) * values;
  }
  dst += ulong(at.y) * p.stride + at.x;
  *dst = p.add != 0 ? *dst + total : total;
}

kernel void linear_plain_dense(constant LinearParams &p [[buffer(0)]],
                               device float *dst [[buffer(1)]],
                               device const float *x [[buffer(2)]],
                               device const uchar *data [[buffer(3)]],
                               uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.out || at.y >= p.rows) return;
  x += ulong(at.y) * p.in;
  float total = 0.0f;
  for (uint i = 0; i < p.in; i++) total += load_float(data, ulong(at.x) * p.in + i, FORMAT) * x[i];
  dst += ulong(at.y) * p.stride + at.x;
  *dst = p.add != 0 ? *dst + total : total;
}

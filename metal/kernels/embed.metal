// Embedding: dst[i] = table[tokens[i]], the row's codes turned into values.
//
// embed_affine  dst f32 [n, in]; data u32 [out, in·bits/32], scales and biases [out, in/group]; tokens i32 [n]
// embed_dense   dst f32 [n, in]; data [out, in] f32, f16 or bf16
// Grid: a thread an element, x along the row, y the rows. No barriers, no sums: the result is exact to the rounding of
// scale·q + bias. Its own plain variant. Reference: device/cpu Embed; tolerance 1e-6 of the row, one fused rounding.

constant uint BITS [[function_constant(0)]];
constant uint GROUP [[function_constant(1)]];
constant uint FORMAT [[function_constant(2)]];  // of scales and biases, or of dense data

struct EmbedParams {
  uint rows;  // n
  uint in;    // columns
};

kernel void embed_affine(constant EmbedParams &p [[buffer(0)]],
                         device float *dst [[buffer(1)]],
                         device const uint *data [[buffer(2)]],
                         device const uchar *scales [[buffer(3)]],
                         device const uchar *biases [[buffer(4)]],
                         device const int *tokens [[buffer(5)]],
                         uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.in || at.y >= p.rows) return;
  const ulong token = ulong(tokens[at.y]);
  const ulong group = token * (p.in / GROUP) + at.x / GROUP;
  const uint code = load_code(data + token * (ulong(p.in) * BITS / 32), at.x, BITS);
  dst[ulong(at.y) * p.in + at.x] = load_float(scales, group, FORMAT) * float(code) + load_float(biases, group, FORMAT);
}

kernel void embed_dense(constant EmbedParams &p [[buffer(0)]],
                        device float *dst [[buffer(1)]],
                        device const uchar *data [[buffer(2)]],
                        device const int *tokens [[buffer(5)]],
                        uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.in || at.y >= p.rows) return;
  dst[ulong(at.y) * p.in + at.x] = load_float(data, ulong(tokens[at.y]) * p.in + at.x, FORMAT);
}

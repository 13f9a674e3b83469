// Attention, plain: dst = softmax(q·kᵀ·scale)·v ⊙ sigmoid(gate), causal, under the segment's policy. The variant behind
// attention_flash and attention_decode, and the one for head sizes that they do not take.
//
// dst, q f32 [rows, H·D]; q_gate f32 [rows, H·2·D]; keys, values: pages of one layer (prelude.metal); pages i32, the segment's table.
// A thread owns a head of a row, D at most 256; x the heads, y the segment's rows. No barriers. Accumulation f32.
// Reference: device/cpu Attention over the same pages; tolerance 1e-4 of the row's largest value.

struct AttentionParams {
  uint rows;      // of the segment
  uint row;       // its first
  uint start;     // position of that row
  uint heads;     // H
  uint kv_heads;  // Hkv
  uint dim;       // D
  uint sink;
  uint window;      // 0: exact
  uint dense_from;  // position from which rows see all
  float scale;      // 1/√D
};

constant uint Q8 [[function_constant(0)]];  // 1: pages are q8
constant constexpr uint PAGE = 256;
constant constexpr float LOWEST = -1e30f;  // finite: the difference of two is a number

// visible tells whether the row at position t sees key, which is not after it.
inline bool visible(uint key, uint t, constant AttentionParams &p) {
  return p.window == 0 || t >= p.dense_from || key < p.sink || key + p.window > t;
}

kernel void attention_plain(constant AttentionParams &p [[buffer(0)]],
                            device float *dst [[buffer(1)]],
                            device const float *q [[buffer(2)]],
                            device const float *q_gate [[buffer(3)]],
                            device const uchar *keys [[buffer(4)]],
                            device const uchar *values [[buffer(5)]],
                            device const int *pages [[buffer(6)]],
                            uint2 at [[thread_position_in_grid]]) {
  if (at.x >= p.heads || at.y >= p.rows) return;
  const uint d = p.dim;
  const uint t = p.start + at.y;
  const uint kv_head = at.x / (p.heads / p.kv_heads);
  const ulong head = ulong(p.row + at.y) * p.heads + at.x;
  q += head * d;
  float acc[PAGE];
  for (uint i = 0; i < d; i++) acc[i] = 0.0f;
  float top = LOWEST;
  float sum = 0.0f;
  for (uint key = 0; key <= t; key++) {
    if (!visible(key, t, p)) continue;
    const ulong place = ulong(pages[key / PAGE]) * kv_page_bytes(p.kv_heads, d, Q8 != 0);
    float score = 0.0f;
    for (uint i = 0; i < d; i++) score += q[i] * kv_value(keys + place, p.kv_heads, d, kv_head, key % PAGE, i, Q8 != 0);
    score *= p.scale;
    const float new_top = max(top, score);
    const float factor = precise::exp(top - new_top);
    const float weight = precise::exp(score - new_top);
    for (uint i = 0; i < d; i++) acc[i] = acc[i] * factor + weight * kv_value(values + place, p.kv_heads, d, kv_head, key % PAGE, i, Q8 != 0);
    sum = sum * factor + weight;
    top = new_top;
  }
  dst += head * d;
  q_gate += head * 2 * d + d;
  for (uint i = 0; i < d; i++) dst[i] = acc[i] / sum * sigmoid(q_gate[i]);
}

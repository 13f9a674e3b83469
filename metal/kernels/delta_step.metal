// Gated delta rule, the recurrence over a segment's tokens. Per value head with its key head:
//   q = q/√(Σq²+1e-6)/√Dk; k = k/√(Σk²+1e-6); S = αS; δ = β(v - S·k); S = S + δ kᵀ; o = S·q
//
// qkv f32 [rows, 2·Hk·Dk + Hv·Dv] after the convolution; alpha, beta f32 [rows, Hv]; state f32 [Hv, Dv, Dk], advanced;
// dst f32 [rows, Hv·Dv]. One dispatch a segment; grid x: value rows by four, y: value heads.
// delta_step_dk32, _dk64, _dk128   a simdgroup owns a row of S, in registers over the whole loop, Dk/32 elements a lane;
//                                  two sums over the lanes a token. No barriers.
// Plain variant: delta_step_plain.metal.
// All f32; S is updated in the order that a replay of (α, k, δ) would take. Reference: device/cpu DeltaRule; tolerance 1e-4 of the
// largest output of the segment: the recurrence carries rounding on.

struct DeltaStepParams {
  uint rows;
  uint key_heads;
  uint value_heads;
  uint key_dim;
  uint value_dim;
};

template <uint N>
kernel void delta_step(constant DeltaStepParams &p [[buffer(0)]],
                       device float *dst [[buffer(1)]],
                       device const float *qkv [[buffer(2)]],
                       device const float *alpha [[buffer(3)]],
                       device const float *beta [[buffer(4)]],
                       device float *state [[buffer(5)]],
                       uint2 tile [[threadgroup_position_in_grid]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint dk = N * 32;
  const uint head = tile.y;
  const uint row = tile.x * 4 + simdgroup;  // of S
  if (row >= p.value_dim) return;
  const uint key = head / (p.value_heads / p.key_heads);
  const uint width = 2 * p.key_heads * dk + p.value_heads * p.value_dim;
  state += (ulong(head) * p.value_dim + row) * dk + lane * N;
  device const float *q = qkv + key * dk + lane * N;
  device const float *k = q + p.key_heads * dk;
  device const float *v = qkv + 2 * p.key_heads * dk + head * p.value_dim + row;
  dst += head * p.value_dim + row;
  alpha += head;
  beta += head;
  float s[N];
  for (uint i = 0; i < N; i++) s[i] = state[i];
  const float root = precise::rsqrt(float(dk));
  for (uint t = 0; t < p.rows; t++) {
    float kv[N];
    float3 sums = float3(0.0f);  // Σq², Σk², S·k
    for (uint i = 0; i < N; i++) {
      const float x = q[i];
      kv[i] = k[i];
      s[i] *= *alpha;
      sums += float3(x * x, kv[i] * kv[i], s[i] * kv[i]);
    }
    sums = simd_sum(sums);
    const float norm = precise::rsqrt(sums.y + 1e-6f);
    const float delta = *beta * (*v - sums.z * norm);
    float o = 0.0f;
    for (uint i = 0; i < N; i++) {
      s[i] += delta * (kv[i] * norm);
      o += s[i] * q[i];
    }
    o = simd_sum(o);
    if (lane == 0) *dst = o * (precise::rsqrt(sums.x + 1e-6f) * root);
    q += width;
    k += width;
    v += width;
    dst += p.value_heads * p.value_dim;
    alpha += p.value_heads;
    beta += p.value_heads;
  }
  for (uint i = 0; i < N; i++) state[i] = s[i];
}

template [[host_name("delta_step_dk32")]] kernel void delta_step<1>(
    constant DeltaStepParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *qkv [[buffer(2)]],
    device const float *alpha [[buffer(3)]], device const float *beta [[buffer(4)]], device float *state [[buffer(5)]],
    uint2 tile [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("delta_step_dk64")]] kernel void delta_step<2>(
    constant DeltaStepParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *qkv [[buffer(2)]],
    device const float *alpha [[buffer(3)]], device const float *beta [[buffer(4)]], device float *state [[buffer(5)]],
    uint2 tile [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]);
template [[host_name("delta_step_dk128")]] kernel void delta_step<4>(
    constant DeltaStepParams &p [[buffer(0)]], device float *dst [[buffer(1)]], device const float *qkv [[buffer(2)]],
    device const float *alpha [[buffer(3)]], device const float *beta [[buffer(4)]], device float *state [[buffer(5)]],
    uint2 tile [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]);

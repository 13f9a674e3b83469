// Gates of the delta rule: a = exp(-exp(a_log)·softplus(a + dt_bias)), the decay α; b = sigmoid(b), the step β. In place.
//
// a, b f32 [rows, heads]; a_log, dt_bias f32 [heads]. A thread owns a row's head. No barriers. Its own plain variant.
// Before delta_step, so that its loop over tokens has no exponential in it.
// Reference: device/cpu DeltaRule (gates in float64); tolerance 1e-4.

struct DeltaGatesParams {
  uint count;  // rows·heads
  uint heads;
};

// softplus is log(1+e^x), linear above 20. Below -8, log1p(y) is y - y²/2 to f32's last place; above, log is.
inline float softplus(float x) {
  if (x > 20.0f) return x;
  const float y = precise::exp(x);
  return x < -8.0f ? y - 0.5f * y * y : precise::log(1.0f + y);
}

kernel void delta_gates(constant DeltaGatesParams &p [[buffer(0)]],
                        device float *a [[buffer(1)]],
                        device float *b [[buffer(2)]],
                        device const float *a_log [[buffer(3)]],
                        device const float *dt_bias [[buffer(4)]],
                        uint i [[thread_position_in_grid]]) {
  if (i >= p.count) return;
  const uint head = i % p.heads;
  a[i] = precise::exp(-precise::exp(a_log[head]) * softplus(a[i] + dt_bias[head]));
  b[i] = sigmoid(b[i]);
}

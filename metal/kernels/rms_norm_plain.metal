// RMS norm, plain: as rms_norm.metal, a thread a row. Tolerance as there.

struct RMSNormParams {
  uint rows;
  uint cols;
  uint stride;  // columns of dst
  uint column;  // where the row begins in dst
  float eps;
};

kernel void rms_norm_plain(constant RMSNormParams &p [[buffer(0)]],
                           device float *dst [[buffer(1)]],
                           device const float *x [[buffer(2)]],
                           device const float *weight [[buffer(3)]],
                           uint row [[thread_position_in_grid]]) {
  if (row >= p.rows) return;
  x += ulong(row) * p.cols;
  dst += ulong(row) * p.stride + p.column;
  float sum = 0.0f;
  for (uint i = 0; i < p.cols; i++) sum += x[i] * x[i];
  const float scale = precise::rsqrt(sum / float(p.cols) + p.eps);
  for (uint i = 0; i < p.cols; i++) dst[i] = x[i] * scale * weight[i];
}

// RMS norm: dst[i, column:] = x[i]/sqrt(mean(x[i]²)+eps)·weight. The model norms the residual stream twice a layer.
//
// x f32 [rows, cols]; weight f32 [cols]; dst f32 [rows, stride]; dst may be x.
// rms_norm        a threadgroup of 256 owns a row: simdgroups sum, one barrier, every thread adds the 8 partial sums.
//                 The barrier also keeps a row in place from being written before all have read it.
// Plain variant: rms_norm_plain.metal.
// Accumulation f32. Reference: device/cpu RMSNorm; tolerance 1e-4 of the row's largest value, order of summation.

struct RMSNormParams {
  uint rows;
  uint cols;
  uint stride;  // columns of dst
  uint column;  // where the row begins in dst
  float eps;
};

kernel void rms_norm(constant RMSNormParams &p [[buffer(0)]],
                     device float *dst [[buffer(1)]],
                     device const float *x [[buffer(2)]],
                     device const float *weight [[buffer(3)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint thread_index [[thread_index_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[32];
  x += ulong(row) * p.cols;
  dst += ulong(row) * p.stride + p.column;
  float sum = 0.0f;
  for (uint i = thread_index; i < p.cols; i += threads) sum += x[i] * x[i];
  sum = simd_sum(sum);
  if (lane == 0) partial[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = 0.0f;
  for (uint i = 0; i < simdgroups; i++) sum += partial[i];
  const float scale = precise::rsqrt(sum / float(p.cols) + p.eps);
  for (uint i = thread_index; i < p.cols; i += threads) dst[i] = x[i] * scale * weight[i];
}

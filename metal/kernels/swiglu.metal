// SwiGLU: dst = silu(gate)·up, element by element; dst may be gate. Between the MLP's two products.
//
// dst, gate, up f32 [count]. A thread owns an element. No barriers. Its own plain variant.
// Reference: device/cpu SwiGLU; tolerance 1e-4 of the row, the exponential.

struct SwiGLUParams {
  uint count;
};

kernel void swiglu(constant SwiGLUParams &p [[buffer(0)]],
                   device float *dst [[buffer(1)]],
                   device const float *gate [[buffer(2)]],
                   device const float *up [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
  if (i >= p.count) return;
  dst[i] = silu(gate[i]) * up[i];
}

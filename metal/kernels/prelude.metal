// What every kernel file begins with; the host puts it in front of the file.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// Float formats of stored weights and scales; the numbers are engine/device's.
constant constexpr uint FORMAT_F32 = 0;
constant constexpr uint FORMAT_F16 = 1;

// load_float reads element i of an array of float format f (f32, f16, else bf16, whose bits are the upper half of an f32).
inline float load_float(device const uchar *p, ulong i, uint f) {
  if (f == FORMAT_F32) return ((device const float *)p)[i];
  if (f == FORMAT_F16) return float(((device const half *)p)[i]);
  return as_type<float>(uint(((device const ushort *)p)[i]) << 16);
}

// load_code reads element i of a little-endian bit stream of codes, and never a word without a bit of it.
inline uint load_code(device const uint *row, uint i, uint bits) {
  const uint at = i * bits;
  const uint word = at >> 5;
  const uint shift = at & 31u;
  uint v = row[word] >> shift;
  if (shift + bits > 32u) v |= row[word + 1] << (32u - shift);
  return v & ((1u << bits) - 1u);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + precise::exp(-x)); }
inline float silu(float x) { return x * sigmoid(x); }

// STATUS_RANGE in the pass's status word: a finite value did not fit into 16 bits.
constant constexpr uint STATUS_RANGE = 1;
constant constexpr float HALF_MAX = 65504.0f;

inline bool beyond_half(float x) { return isfinite(x) && fabs(x) > HALF_MAX; }

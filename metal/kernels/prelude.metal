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

// number is c as a float, c below 2^23: without the conversion, which GPUs do at a fraction of their other rates.
inline float number(uint c) { return as_type<float>(0x4b000000u | c) - 8388608.0f; }

// rank is a whole number in the order of x, above 0: -0 as 0, NO_NUMBER for NaN, above all. By the bits alone, so that nothing that a compiler
// takes for granted of floats, and no flushing of denormals, comes between.
constant constexpr uint NO_NUMBER = 0xffffffffu;
inline uint rank(float x) {
  const uint bits = as_type<uint>(x);
  const uint size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return NO_NUMBER;
  return bits > 0x80000000u ? ~bits : size | 0x80000000u;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + precise::exp(-x)); }
inline float silu(float x) { return x * sigmoid(x); }

// STATUS_RANGE in the pass's status word: a finite value did not fit into 16 bits.
constant constexpr uint STATUS_RANGE = 1;
constant constexpr float HALF_MAX = 65504.0f;

inline bool beyond_half(float x) { return isfinite(x) && fabs(x) > HALF_MAX; }

// Pages of the keys, or the values, of one layer. f16: half [pages, heads, 256, D]. q8: a page is codes uchar [heads, 256, D], then a word
// [heads, 256, D/64] for every 64 of them, bf16 scale in its lower half and bf16 bias in its upper: value = scale·code + bias.
constant constexpr uint KV_POSITIONS = 256;
constant constexpr uint KV_GROUP = 64;

inline ulong kv_page_bytes(uint heads, uint d, bool q8) { return ulong(heads) * KV_POSITIONS * (q8 ? d + d / 16 : 2 * d); }
inline float kv_scale(uint word) { return as_type<float>(word << 16); }
inline float kv_bias(uint word) { return as_type<float>(word & 0xffff0000u); }

// kv_words is where the words of a position of a head begin in a q8 page, in bytes.
inline ulong kv_words(uint heads, uint d, uint head, uint at) {
  return ulong(heads) * KV_POSITIONS * d + (ulong(head) * KV_POSITIONS + at) * (d / KV_GROUP) * 4;
}

// kv_value reads one value of a page.
inline float kv_value(device const uchar *page, uint heads, uint d, uint head, uint at, uint i, bool q8) {
  const ulong place = (ulong(head) * KV_POSITIONS + at) * d + i;
  if (!q8) return float(((device const half *)page)[place]);
  const uint word = ((device const uint *)(page + kv_words(heads, d, head, at)))[i / KV_GROUP];
  return kv_scale(word) * float(page[place]) + kv_bias(word);
}

// kv_shorter rounds to bf16: away from zero, or towards it.
inline float kv_shorter(float x, bool away) { return as_type<float>((as_type<uint>(x) + (away ? 0xffffu : 0u)) & 0xffff0000u); }

// kv_word packs scale and bias of a group with these extremes; no number when a value was not finite.
inline uint kv_word(float low, float high, bool finite) {
  const float bias = kv_shorter(low, low < 0.0f);
  const float scale = kv_shorter((high - bias) / 255.0f, true);
  return finite ? as_type<uint>(bias) | as_type<uint>(scale < 1e-37f ? 0.0f : scale) >> 16 : 0x7fc07fc0u;
}

// kv_code is the code of x under a word.
inline uchar kv_code(float x, uint word) {
  const float scale = kv_scale(word);
  return scale > 0.0f ? uchar(uint(min(255.0f, (x - kv_bias(word)) / scale) + 0.5f)) : uchar(0);
}

// kv_load reads E neighbouring values of a q8 page that share a word. A word of 0 makes zeros.
template <uint E>
inline void kv_load(thread float (&to)[E], device const uchar *from, uint word) {
  if (E == 2) {
    const uint c = *(device const ushort *)from;
    to[0] = number(c & 255u);
    to[1 % E] = number(c >> 8);
  }
  if (E == 4) {
    const uint c = *(device const uint *)from;
    for (uint i = 0; i < 4; i++) to[i % E] = number(c >> (8 * i) & 255u);
  }
  if (E == 8) {
    const uint2 c = *(device const uint2 *)from;
    for (uint i = 0; i < 4; i++) {
      to[i % E] = number(c.x >> (8 * i) & 255u);
      to[(4 + i) % E] = number(c.y >> (8 * i) & 255u);
    }
  }
  for (uint i = 0; i < E; i++) to[i] = kv_scale(word) * to[i] + kv_bias(word);
}

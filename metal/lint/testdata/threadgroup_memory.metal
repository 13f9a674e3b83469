constant constexpr uint HALF = 4 * 1024;
kernel void fits(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float all[2 * HALF];
  all[i] = x[i];
}
kernel void one(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float big[9000];  // want rule: one has 36000 bytes of threadgroup memory with big
  big[i] = x[i];
}
kernel void many(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float first[HALF];
  threadgroup half second[2 * HALF];
  threadgroup uint last;  // want rule: many has 32772 bytes
  first[i] = x[i];
}
template <uint D>
kernel void of(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  constexpr uint ROW = D + 8;
  threadgroup float rows[(16 * ROW) * 4];  // want rule: of<128> has 34816 bytes
  threadgroup matrix other[4];  // want rule: nothing says how large matrix is
  rows[i] = x[i];
}
template [[host_name("of_64")]] kernel void of<64>(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]);
template [[host_name("of_128")]] kernel void of<128>(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]);

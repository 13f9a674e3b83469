inline float first(const float *x) { return x[0]; }  // want rule: names no memory
kernel void k(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = first(x);  // want space: no matching function for call to 'first'
}

inline uint depth(uint n) { return n == 0 ? 0 : 1 + depth(n - 1); }  // want rule: depth calls itself
kernel void k(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = depth(i);
}

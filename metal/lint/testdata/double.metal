kernel void k(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  double y = x[i];  // want rule: "double" is not in Metal's language
  x[i] = float(y);
}

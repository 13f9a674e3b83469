kernel void k(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float part[32];
  part[i] = x[i];
  device float *p = part;  // want space: cannot initialize a variable of type
  p[0] = 1.0f;
}

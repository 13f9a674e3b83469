kernel void k(device float *x [[buffer(0)]],
              device float *y [[buffer(31)]],  // want rule: buffer 31
              ushort i [[thread_index_in_simdgroup]]) {  // want rule: thread_index_in_simdgroup as ushort
  auto f = [&](float v) { return v; };  // want rule: not in Metal's language
  x[i] = f(exp(y[i]));  // want rule: say precise::exp
}

// Package cpurun runs Metal kernels on the CPU: the same .metal source, compiled by clang as C++ over a small metal_stdlib,
// with the threads of a threadgroup as fibers.
//
// It is made to find mistakes, not to be fast. Fibers run in an order drawn from a seed, threadgroups in another; threadgroup
// memory begins as NaN with canaries behind each array; a simdgroup operation or a barrier that not every live thread
// reaches ends the run with an error; buffers made by Guarded end at a page that cannot be touched. What it cannot find: what
// only a GPU's memory model or Apple's compiler does.
package cpurun

// Package cpurun runs Metal kernels on the CPU: the same .metal source, compiled by clang as C++ over a small
// metal_stdlib, with the threads of a threadgroup as fibers.
//
// It is made to find bugs, not to be fast. Fibers run in a random order, and so do threadgroups; threadgroup
// memory begins as NaN with canaries after each array; a simdgroup operation or a barrier that not every live thread
// reaches ends the run with an error; buffers made by Guarded end at a page that cannot be accessed. It cannot find
// what only a GPU's memory model or Apple's compiler causes.
package cpurun

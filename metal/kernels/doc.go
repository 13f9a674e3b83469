// Package kernels is the Metal source of every operation of engine/device, one operation a file, and the parameter
// structs that the host hands to them.
//
// prelude.metal precedes each file; Source returns the two as one text, which the host compiles on the user's Mac and
// the tests compile for the CPU. Buffer 0 is always the parameters. Kernels are C++14 without what Metal lacks (package
// lint).
package kernels

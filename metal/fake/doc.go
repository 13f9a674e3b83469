// Package fake is a libobjc and a Metal for machines that have none: it answers the calls of package mtl by running
// kernels on the CPU (package cpurun), later and in another order than they were encoded. It is for tests.
package fake

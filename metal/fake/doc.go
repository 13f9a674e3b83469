// Package fake is a libobjc and a Metal for machines without: it answers the calls of package mtl by running kernels on the
// CPU (package cpurun), later and in another order than they were given. For tests.
package fake

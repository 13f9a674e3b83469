// Package build makes slipway-server from source available: it finds the source and the Go toolchain without running
// anything, names the source tree by a hash, and builds it in an environment that gives the same bytes twice.
package build

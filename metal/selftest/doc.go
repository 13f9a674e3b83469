// Package selftest runs every operation of a device against a reference, at real and at odd shapes, and compares.
//
// The server runs it on the user's machine before it trusts its kernels, because kernels that are right on one generation of GPUs have
// been wrong on another; the tests run the same operations on any machine. A fast kernel that differs is replaced by its plain
// variant and named; only when that differs too has the device failed.
package selftest

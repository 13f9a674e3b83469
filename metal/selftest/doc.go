// Package selftest runs every operation of a device against a reference, at real and at odd shapes, and compares.
//
// The server runs it on the user's machine before it trusts its kernels, because kernels that are correct on one
// generation of GPUs have been wrong on another. The tests run the same operations on any machine. A fast kernel that
// differs is replaced by its plain variant and named. The device fails only when the plain variant differs too.
package selftest

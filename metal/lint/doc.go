// Package lint finds errors in .metal sources that no compiler here reports: some would be refused by Apple's compiler,
// some not even there.
//
// AddressSpaces is a pass of clang over the source as C++ in which device, constant and threadgroup memory are
// different address spaces. Rules are our own: what Metal's language lacks, and Metal's limits, 32 KiB of threadgroup
// memory among them. Both report the line in the file. Head asks what the comment on top of a kernel file must say.
package lint

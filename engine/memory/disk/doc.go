// Package disk is the second tier of restore points: files that survive a restart and a kill at any moment.
//
// Invariants. A file has its final name only when it is whole. Every byte that is used was checked against its
// checksum. The files never take more than the cap: room is made in the book before a byte is written, and deletions
// run before the writes that needed them. All writing happens in one background goroutine, in the order it was asked
// for. The files hold the user's text; they are readable by their owner alone. The format is described in
// docs/cache-format.md.
package disk

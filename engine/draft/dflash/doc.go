// Package dflash drafts with a DFlash2 model: a small transformer that reads the outputs of some layers of the target
// (taps) at the positions that the target has processed, and proposes a block of tokens at once.
//
//	taps -> context rows -> keys and values of each layer, for a window of positions
//	[anchor, mask, mask, ...] -> layers -> final rows -> candidates by the target's head -> selector, left to right
//
// It has no embedding and no head of its own: the target's are used. Source of names, shapes and arithmetic: the
// published DFlash2 drafts; checked against reference outputs in testdata/oracle.
//
// It records only operations that every device has. What they lack, the dynamic convolutions and the layout of
// queries, the host does between passes on the device's buffers: some thousand multiplications a row.
package dflash

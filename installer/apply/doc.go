// Package apply carries out a plan action by action and chooses nothing: it re-checks each precondition, journals the
// intent, acts, journals the result, and writes a receipt. It survives a kill at any point, and a second run changes
// nothing. Everything it writes or removes goes through an os.Root on the home, so that links planted inside the home
// lead nowhere.
//
// Invariants: a record is on disk (fsync) before the step that it announces; A file has its final name only
// when it is whole; a receipt is written before the journal is closed, so that what was made is always listed in one
// of the two.
package apply

package model

import (
	"errors"
	"fmt"

	"slipway/engine/memory"
)

// ErrNoPages says that attention memory is exhausted: all MaxSequences are open, or no page is free.
var ErrNoPages = memory.ErrNoPages

// ErrSequenceLost says that a pass failed on the device while it moved the sequence. Only Restore and Close work on it.
var ErrSequenceLost = errors.New("the sequence's state was lost when a pass failed: restore or close it")

// ErrNoMTP says that a draft by the MTP head was chosen, and the checkpoint has none.
var ErrNoMTP = errors.New("this checkpoint has no MTP head; choose another draft, or none")

// WindowError says that tokens would go past the window. The sequence has not moved.
type WindowError struct{ Len, Tokens, Window int }

func (e *WindowError) Error() string {
	return fmt.Sprintf("%d tokens after %d do not fit a window of %d", e.Tokens, e.Len, e.Window)
}

// RowsError says that a pass was given more rows than the network was loaded for.
type RowsError struct{ Rows, Max int }

func (e *RowsError) Error() string {
	return fmt.Sprintf("a pass of %d rows, at most %d", e.Rows, e.Max)
}

// TokenError names a token id that is not in the vocabulary.
type TokenError struct {
	Token     int32
	VocabSize int
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d is not in [0,%d)", e.Token, e.VocabSize)
}

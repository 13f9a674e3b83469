package web

import (
	"time"

	"slipway/engine/api/turn"
	"slipway/wire"
)

// SpentOf says where the time of a reply went.
func SpentOf(end *turn.End, notice string) wire.Spent {
	return wire.Spent{
		ComputedTokens: end.Usage.ComputedTokens, Notice: notice, Approximations: end.Approximations,
		TokenizeMs: millis(end.Times.Tokenize), QueueMs: millis(end.Times.Queue),
		PrefillMs: millis(end.Times.Prefill), DecodeMs: millis(end.Times.Decode),
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// NoteOf is the member slipway of a reply; nil where there is nothing to say.
func NoteOf(text string) *wire.Note {
	if text == "" {
		return nil
	}
	return &wire.Note{Notice: text}
}

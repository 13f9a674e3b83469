package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"slipway/fault"
	"slipway/installer/answers"
)

// What a verb found until a signal came is no whole answer: it ends with the signal's code, in words and as a document.
func TestVerbThatASignalStopsHasNoAnswer(t *testing.T) {
	for _, asDocument := range []bool{false, true} {
		for class, want := range map[fault.Class]int{fault.Interrupted: 130, fault.Terminated: 143} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(&stopError{class, "a signal"})
			var out bytes.Buffer
			s := &session{ctx: ctx, out: &results{to: &out}, errOut: io.Discard, json: asDocument, verb: "neighbors"}
			code := s.finish(s.answer(struct{}{}, nil, func(w io.Writer) { io.WriteString(w, "none found") }))
			if code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			var e answers.Envelope
			if asDocument && (json.Unmarshal(out.Bytes(), &e) != nil || e.OK || e.Meta.ExitCode != want) {
				t.Errorf("%s", out.String())
			}
			if !asDocument && out.Len() > 0 {
				t.Errorf("an answer was printed: %s", out.String())
			}
		}
	}
}

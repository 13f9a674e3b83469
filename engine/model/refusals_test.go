package model

import (
	"context"
	"errors"
	"testing"

	"slipway/engine/pass"
)

func TestRefusedPassesMoveNothing(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 300, MaxSequences: 2, ChunkTokens: 256})
	prompt := longPrompt(t, 400)
	s, other := newSequence(t, n), newSequence(t, n)
	forward(t, s, prompt[:200], 200, pass.LogitsNone, nil)
	var window *WindowError
	var rows *RowsError
	var token *TokenError
	for _, row := range []struct {
		name   string
		tokens []int32
		into   any
	}{
		{"past the window", prompt[:101], &window},
		{"token above the vocabulary", []int32{4, 4096}, &token},
		{"negative token", []int32{-1}, &token},
	} {
		_, err := n.Forward(context.Background(), []pass.Segment{{Seq: other, Tokens: prompt[:5]},
			{Seq: s, Tokens: row.tokens}})
		if err == nil || !errors.As(err, row.into) {
			t.Errorf("%s: error %v", row.name, err)
		}
		if s.Len() != 200 || other.Len() != 0 {
			t.Errorf("%s: moved to %d and %d", row.name, s.Len(), other.Len())
		}
	}
	if _, err := n.Forward(context.Background(), []pass.Segment{{Seq: other, Tokens: prompt[:273]}}); !errors.As(
		err, &rows) {
		t.Errorf("more rows than a pass takes: error %v", err)
	}
	if _, err := n.NewSequence(); !errors.Is(err, ErrNoPages) {
		t.Errorf("a third sequence of two: error %v", err)
	}
	other.Close()
	if _, err := n.NewSequence(); err != nil {
		t.Errorf("a sequence after one was closed: %v", err)
	}
}

// Points hold pages; when none is left, a pass is refused before anything has moved, and goes through once a point is
// dropped.
func TestPassWithoutFreePagesMovesNothing(t *testing.T) {
	n := load(t, pocketQ4, Options{WindowTokens: 512, MaxSequences: 1})
	prompt := longPrompt(t, 512)
	s := newSequence(t, n)
	forward(t, s, prompt[:300], 300, pass.LogitsNone, nil)
	point, err := s.Save(false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s, err = n.NewSequence(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := n.Forward(context.Background(), []pass.Segment{{Seq: s, Tokens: prompt[:10]}}); !errors.Is(
		err, ErrNoPages) {
		t.Fatalf("error %v, wanted ErrNoPages", err)
	}
	if s.Len() != 0 {
		t.Fatalf("moved to %d", s.Len())
	}
	point.Release()
	forward(t, s, prompt[:10], 10, pass.LogitsNone, nil)
}

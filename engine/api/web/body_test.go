package web

import (
	"testing"
	"time"

	"slipway/engine/api/turn"
)

func TestLargeBodiesAreReadOneAtATime(t *testing.T) {
	s := NewBodies(1 << 20)
	release, failure := s.largeBody(time.Now().Add(time.Minute))
	if failure != nil {
		t.Fatal(failure)
	}
	if _, failure = s.largeBody(time.Now()); failure == nil || StatusOf(failure.Kind) != 503 ||
		failure.RetryAfter == 0 {
		t.Fatalf("a second one beside it: %+v", failure)
	}
	waited := make(chan *turn.Error)
	go func() {
		release, failure := s.largeBody(time.Now().Add(time.Minute))
		release()
		waited <- failure
	}()
	release()
	release() // by the handler's end once more
	if failure := <-waited; failure != nil {
		t.Errorf("after it: %v", failure)
	}
	if len(s.large) != 0 {
		t.Error("the place is not given back")
	}
}

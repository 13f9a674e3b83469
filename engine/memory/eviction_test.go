package memory

import (
	"math"
	"slices"
	"testing"
)

// A budget of three points, and 500 one-off prompts between the turns of a conversation that was restored once.
func TestFloodOfOneOffPromptsEvictsNoConversation(t *testing.T) {
	three := Budget{OwnBytes: 300, Pages: 1000, TotalBytes: math.MaxInt64, PageBytes: 0}
	x := NewIndex(exact, three, Budget{}, 100_000)
	add := func(c *Conversation, prefix []int32, kind Kind) {
		cost := Cost{Bytes: 100}
		if _, ok := x.Room(InMemory, cost, ClaimNew); !ok {
			t.Fatal("no room")
		}
		x.Add(exact, prefix, nil, kind, c, InMemory, cost)
	}
	conversation := ids(0, 400)
	c := x.Open(nil)
	add(c, conversation[:300], KindTurn)
	m := x.Find(exact, conversation, 399, true)
	c = x.Open(m.Point) // restored once
	add(c, conversation[:350], KindTurn)
	add(c, conversation[:390], KindReply)
	for i := range 500 {
		one := ids(10_000+1000*i, 700) // longer, and newer
		c := x.Open(nil)
		add(c, one[:600], KindTurn)
		add(c, one, KindReply)
		if u := x.Usage(InMemory); u.OwnBytes > 300 {
			t.Fatalf("%d bytes held", u.OwnBytes)
		}
	}
	if m := x.Find(exact, conversation, 399, true); m.Usable < 300 {
		t.Fatalf("%d tokens of the conversation are left", m.Usable)
	}
}

func TestConversationNeverRestoredIsEvictedBeforeOneThatWas(t *testing.T) {
	x := NewIndex(exact, Budget{OwnBytes: 200, Pages: 10, TotalBytes: math.MaxInt64}, Budget{}, 1000)
	old := x.Add(exact, ids(0, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	x.Open(old)
	for range 50 {
		x.Open(nil)
	}
	x.Add(exact, ids(1000, 5000), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	gone, ok := x.Room(InMemory, Cost{Bytes: 100}, ClaimNew)
	if !ok || len(gone) != 1 || gone[0].Point == old {
		t.Fatal("the only point of a conversation that was restored went first")
	}
}

func TestOneOffEvictsNothingOfTheConversationResumedLast(t *testing.T) {
	x := NewIndex(exact, Budget{OwnBytes: 200, Pages: 10, TotalBytes: math.MaxInt64}, Budget{}, 1000)
	older := x.Add(exact, ids(0, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	latest := x.Add(exact, ids(50, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	x.Open(older)
	x.Open(latest)
	if gone, ok := x.Room(InMemory, Cost{Bytes: 200}, ClaimNew); ok || len(gone) > 0 {
		t.Fatal("a one-off took all that was kept")
	}
	if gone, ok := x.Room(InMemory, Cost{Bytes: 100}, ClaimNew); !ok || len(gone) != 1 || gone[0].Point != older {
		t.Fatal("a one-off finds no room beside the most recently resumed conversation")
	}
	if gone, ok := x.Room(InMemory, Cost{Bytes: 200}, ClaimResumed); !ok || len(gone) != 1 || gone[0].Point != latest {
		t.Fatal("a resumed conversation finds no room")
	}
}

func TestLastPointStaysWhileRedundantOnesAreOnlyPinned(t *testing.T) {
	x := NewIndex(exact, Budget{OwnBytes: 200, Pages: 10, TotalBytes: math.MaxInt64}, Budget{}, 1000)
	only := x.Add(exact, ids(0, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	x.Open(only)
	other := x.Add(exact, ids(50, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	x.Pin(other)
	if gone, ok := x.Room(InMemory, Cost{Bytes: 100}, ClaimNew); ok || len(gone) > 0 {
		t.Fatal("the last point of a conversation went, because a one-off was being written")
	}
	x.Unpin(other)
	if gone, ok := x.Room(InMemory, Cost{Bytes: 100}, ClaimNew); !ok || len(gone) != 1 || gone[0].Point != other {
		t.Fatal("the one-off did not go once it was free")
	}
}

func TestRoomThatPinsForbidEvictsNothing(t *testing.T) {
	x := NewIndex(exact, Budget{OwnBytes: 200, Pages: 10, TotalBytes: math.MaxInt64}, Budget{}, 1000)
	a := x.Add(exact, ids(0, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	x.Add(exact, ids(50, 10), nil, KindTurn, x.Open(nil), InMemory, Cost{Bytes: 100})
	x.Pin(a)
	if gone, ok := x.Room(InMemory, Cost{Bytes: 150}, ClaimNew); ok || len(gone) > 0 || x.Usage(InMemory).Points != 2 {
		t.Fatal("points left for something that cannot fit")
	}
	if gone, ok := x.Room(InMemory, Cost{Bytes: 100}, ClaimNew); !ok || len(gone) != 1 || gone[0].Point == a {
		t.Fatal("the pinned point went, or nothing did")
	}
}

func TestPeriodicPointsGetSparseBehindAndNeverPassOnePeriodNearTheEnd(t *testing.T) {
	x := NewIndex(exact, unbounded(), unbounded(), 1_000_000)
	whole := ids(0, 100_000)
	const period = 512
	c := x.Open(nil)
	for at := period; at < len(whole); at += period {
		x.Add(exact, whole[:at], nil, KindPeriodic, c, InMemory, Cost{Bytes: 1})
	}
	x.Tidy(exact, whole, period)
	left := x.Usage(InMemory).Points
	if left < 30 || left > 90 {
		t.Errorf("%d of %d points are left", left, len(whole)/period)
	}
	for edit := len(whole) - (denseSpan-1)*period; edit < len(whole); edit += 100 {
		if m := x.Find(exact, append(slices.Clone(whole[:edit]), -1), edit, true); edit-m.Usable > period {
			t.Fatalf("an edit at %d is %d tokens from a point", edit, edit-m.Usable)
		}
	}
}

func TestShortReplysEndIsDroppedNearAnEarlierTurnWithALaterPoint(t *testing.T) {
	x := NewIndex(exact, unbounded(), unbounded(), 1000)
	whole := ids(0, 300)
	c := x.Open(nil)
	for _, p := range []struct {
		at   int
		kind Kind
	}{{100, KindTurn}, {106, KindReply}, {150, KindTurn}, {200, KindReply}} {
		x.Add(exact, whole[:p.at], nil, p.kind, c, InMemory, Cost{Bytes: 1})
	}
	gone := x.Tidy(exact, whole, 0)
	if len(gone[InMemory]) != 1 || gone[InMemory][0].Len != 106 {
		t.Fatalf("%d points went", len(gone[InMemory]))
	}
}

package apply

import (
	"errors"
	"slices"
	"testing"
)

// Silent work is reported by what it waits for; what the work says changes that, and nothing is reported after it.
func TestSilentWorkIsReportedUntilItEnds(t *testing.T) {
	failed := errors.New("it failed")
	events := make(chan Event, 100)
	waiting := Event{Action: "engine", Text: "Preparing"}
	err := Pulse(func(e Event) { events <- e }, waiting, func(report func(Event)) error {
		first := <-events
		if first.Kind != "waiting" || first.Action != "engine" || first.Text != "Preparing" || first.Seconds < 1 {
			t.Errorf("%+v", first)
		}
		report(Event{Kind: "waiting", Action: "engine", Text: "Compiling", Usual: "a while"})
		report(Event{Kind: "note", Text: "said at once"})
		var seen []Event
		for len(seen) == 0 || seen[len(seen)-1].Text != "Compiling" {
			seen = append(seen, <-events)
		}
		if !slices.ContainsFunc(seen, func(e Event) bool { return e.Text == "said at once" }) {
			t.Errorf("what the work says is lost: %+v", seen)
		}
		if last := seen[len(seen)-1]; last.Kind != "waiting" || last.Usual != "a while" {
			t.Errorf("%+v", last)
		}
		return failed
	})
	if err != failed {
		t.Errorf("%v", err)
	}
	if len(events) > 0 {
		t.Errorf("reported after the end: %+v", <-events)
	}
}

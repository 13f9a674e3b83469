package hub

import (
	"sync"
	"time"
)

// EventKind says what an Event reports.
type EventKind string

const (
	Started EventKind = "started" // Bytes: what is kept from before
	Arrived EventKind = "arrived" // Bytes: how many more were written
	Hashed  EventKind = "hashed"  // From, Bytes: a chunk of the file was hashed
	Waiting EventKind = "waiting" // Wait, Why: a retry or a limit of the hub
	Notice  EventKind = "notice"  // Why: a sentence for the user
	Done    EventKind = "done"    // the file has its final name
)

// Event is one step of a download. Path is "" where it is about no single file. Texts carry no secret.
type Event struct {
	Kind  EventKind
	Path  string
	From  int64
	Bytes int64
	Total int64
	Wait  time.Duration
	Why   string
}

// Progress gets every event, one at a time.
type Progress func(Event)

type teller struct {
	mu   sync.Mutex
	tell Progress
}

func (t *teller) say(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tell != nil {
		t.tell(e)
	}
}

// to sends events to another receiver from now on and returns the one before.
func (t *teller) to(tell Progress) (before Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.tell = t.tell, tell
	return before
}

package hub

import (
	"context"
	"sync"
	"testing"
	"time"

	"slipway/installer/store"
)

// A file that ended while no worker waited has woken nobody. Who asks for work next must see for himself that it ended:
// waiting for a word that was already said is waiting for ever.
func TestDownloadEndsWhenAFileEndsUnawaited(t *testing.T) {
	k := newKit(t)
	f := k.repo.Lock().Files[0]
	part, err := store.OpenPartial(k.home, f)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := &download{client: k.client(), home: k.home, lock: k.repo.Lock(), ctx: ctx, cancel: cancel, allowed: 1}
	d.changed = sync.NewCond(&d.mu)
	ended := make(chan struct{})
	close(ended)
	d.active = []*transfer{{d: d, file: f, segment: testSegment, part: part, done: rangeSet{{0, f.Size}},
		pieces: map[*piece]bool{}, ended: ended}}
	answered := make(chan *piece, 1)
	go func() {
		p, _ := d.take(0)
		answered <- p
	}()
	select {
	case p := <-answered:
		if p != nil {
			t.Errorf("a piece %d to %d of a file that is whole", p.from, p.to)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the worker waits although nothing is left to wait for")
	}
}

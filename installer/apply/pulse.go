package apply

import (
	"sync"
	"time"
)

// pulseEvery is how long work may be silent before an event says what it waits for. A person is never left without a
// sign for two seconds.
const pulseEvery = time.Second

// Pulse carries out work and reports an event of kind "waiting" for every second in which the work reports nothing,
// with how long it has lasted. first is what is waited for; a "waiting" event of the work itself changes that and
// starts the count again. report is called by one goroutine at a time.
func Pulse(report func(Event), first Event, work func(report func(Event)) error) error {
	p := &pulse{report: report, waiting: first, began: time.Now(), last: time.Now()}
	p.waiting.Kind = "waiting"
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { p.beat(stop) })
	defer beating.Wait()
	defer close(stop)
	return work(p.tell)
}

type pulse struct {
	mu          sync.Mutex
	report      func(Event)
	waiting     Event
	began, last time.Time
}

func (p *pulse) beat(stop <-chan struct{}) {
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			p.mu.Lock()
			if now.Sub(p.last) >= pulseEvery/2 {
				p.waiting.Seconds = max(1, int(now.Sub(p.began).Seconds()))
				p.report(p.waiting)
			}
			p.mu.Unlock()
		}
	}
}

func (p *pulse) tell(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Kind == "waiting" {
		p.waiting, p.began = e, time.Now()
		return
	}
	p.last = time.Now()
	p.report(e)
}

package hub

import (
	"context"
	"sync"
	"time"
)

// pace keeps all connections together below a rate: each take moves the time at which the next byte is due.
type pace struct {
	perSecond int64 // 0: no limit
	mu        sync.Mutex
	due       time.Time
}

// take waits until n more bytes are due.
func (p *pace) take(ctx context.Context, n int, config *Config) error {
	if p.perSecond <= 0 {
		return nil
	}
	p.mu.Lock()
	now := config.Now()
	if p.due.Before(now) {
		p.due = now
	}
	wait := p.due.Sub(now)
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.perSecond) * float64(time.Second)))
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return config.Sleep(ctx, wait)
}

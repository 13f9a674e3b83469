package hub

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A gate holds every request back until a time that the hub named.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

func (g *gate) close(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.After(g.until) {
		g.until = until
	}
}

func (g *gate) wait(ctx context.Context, config *Config) error {
	g.mu.Lock()
	left := g.until.Sub(config.Now())
	g.mu.Unlock()
	if left <= 0 {
		return ctx.Err()
	}
	return config.Sleep(ctx, left)
}

// maxRateWait bounds one wait: the hub's windows are five minutes long.
const maxRateWait = 10 * time.Minute

// rateWait is how long a 429 asks to wait: the t of a RateLimit header whose r is 0, plus one second; else Retry-After;
// else a minute, which is a fifth of the hub's window.
func rateWait(h http.Header, now time.Time) time.Duration {
	wait := time.Minute
	if seconds, ok := rateLimitReset(h.Get("RateLimit")); ok {
		wait = time.Duration(seconds+1) * time.Second
	} else if after := h.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
			wait = time.Duration(min(seconds, 86400)+1) * time.Second
		} else if at, err := http.ParseTime(after); err == nil {
			wait = at.Sub(now) + time.Second
		}
	}
	return min(max(wait, time.Second), maxRateWait)
}

// rateLimitReset reads `"resolvers";r=0;t=87`, possibly one of several items, and gives t when r is 0.
func rateLimitReset(value string) (seconds int, ok bool) {
	for _, item := range strings.Split(value, ",") {
		remaining, reset := -1, -1
		for _, part := range strings.Split(item, ";") {
			name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil || n < 0 {
				continue
			}
			switch name {
			case "r":
				remaining = n
			case "t":
				reset = min(n, 86400)
			}
		}
		if remaining == 0 && reset >= 0 {
			return reset, true
		}
	}
	return 0, false
}

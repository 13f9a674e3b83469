package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"slipway/installer/apply"
	"slipway/termtext"
	"slipway/units"
)

// progress prints what a run does: a line a step; a moving line for bytes on a terminal, a plain line every few seconds
// elsewhere; one JSON object a line with --events ndjson.
type progress struct {
	s      *session
	mu     sync.Mutex
	moving bool // a terminal that can draw
	drawn  bool // a moving line is on the screen
	began  map[string]time.Time
	last   map[string]time.Time
	first  map[string]int64 // bytes that were there when we began: they say nothing about the rate
}

// Between two lines of one file: often enough to see life, seldom enough to read.
const (
	redrawEvery = 100 * time.Millisecond
	plainEvery  = 5 * time.Second
)

func (s *session) newProgress() *progress {
	file, ok := s.errOut.(*os.File)
	kind := os.Getenv("TERM")
	return &progress{s: s, moving: ok && term.IsTerminal(int(file.Fd())) && kind != "" && kind != "dumb",
		began: map[string]time.Time{}, last: map[string]time.Time{}, first: map[string]int64{}}
}

func (p *progress) report(e apply.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s.events {
		data, err := json.Marshal(e)
		if err == nil {
			fmt.Fprintln(p.s.errOut, string(data))
		}
		return
	}
	switch e.Kind {
	case "action":
		p.line(fmt.Sprintf("[%d/%d] %s", e.Index, e.Count, e.Text))
	case "note":
		p.line("  " + e.Text)
	case "progress":
		p.bytes(e)
	}
}

func (p *progress) bytes(e apply.Event) {
	now := time.Now()
	if _, seen := p.began[e.Path]; !seen {
		p.began[e.Path], p.first[e.Path] = now, e.DoneBytes
	}
	whole := e.DoneBytes >= e.AllBytes
	every := plainEvery
	if p.moving {
		every = redrawEvery
	}
	if !whole && now.Sub(p.last[e.Path]) < every {
		return
	}
	p.last[e.Path] = now
	text := fmt.Sprintf("  %s: %s", e.Path, units.Bytes(e.AllBytes))
	if !whole {
		text = fmt.Sprintf("  %s: %s of %s", e.Path, units.Bytes(e.DoneBytes), units.Bytes(e.AllBytes))
		if seconds := now.Sub(p.began[e.Path]).Seconds(); seconds > 1 {
			if rate := float64(e.DoneBytes-p.first[e.Path]) / seconds; rate > 0 {
				left := time.Duration(float64(e.AllBytes-e.DoneBytes)/rate) * time.Second
				text += fmt.Sprintf(", %s/s, %s left", units.Bytes(int64(rate)), left.Round(time.Second))
			}
		}
	}
	if !p.moving || whole {
		p.line(text)
		return
	}
	fmt.Fprintf(p.s.errOut, "\r\x1b[K%s", termtext.Line(text))
	p.drawn = true
}

// line prints a whole line, over a moving one if there is one.
func (p *progress) line(text string) {
	if p.drawn {
		fmt.Fprint(p.s.errOut, "\r\x1b[K")
		p.drawn = false
	}
	fmt.Fprintln(p.s.errOut, termtext.Line(text))
}

func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprintln(p.s.errOut)
		p.drawn = false
	}
}

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

// progress prints what a run does: a line a step, and under it what is waited for, how long so far, and how much of a
// download is here. On a terminal that line moves; elsewhere a new one comes now and then, more and more seldom; with
// --events ndjson it is one JSON object a line.
type progress struct {
	s       *session
	moving  bool // a terminal that can draw
	verbose bool // every file of a download gets a line

	mu     sync.Mutex
	now    func() time.Time
	drawn  bool // a moving line is on the screen
	counts bool // that line says how much is here: it stays when the run stops
	seldom map[string]*seldom
	speed  speed
}

// redrawEvery is the time between two drawings of a moving line.
const redrawEvery = 100 * time.Millisecond

// timeLeftFrom is how much must have arrived before the time left is said: before, it is a guess.
const timeLeftFrom = 32_000_000

// actionNames are the steps in a few words; the plan above them says more.
var actionNames = map[string]string{"list": "Getting the file list of the model", "home": "Making the folder",
	"draft-list": "Getting the file list of the draft", "draft": "Getting the draft",
	"model": "Getting the model", "engine": "Installing the server", "settings": "Writing the settings",
	"neighbors": "Stopping other servers", "launch": "Starting the server"}

func (s *session) newProgress(verbose bool) *progress {
	file, ok := s.errOut.(*os.File)
	kind := os.Getenv("TERM")
	return &progress{s: s, verbose: verbose, now: time.Now, seldom: map[string]*seldom{},
		moving: ok && term.IsTerminal(int(file.Fd())) && kind != "" && kind != "dumb"}
}

func (p *progress) report(e apply.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s.events {
		p.event(e)
		return
	}
	switch e.Kind {
	case "action":
		p.line(fmt.Sprintf("[%d/%d] %s", e.Index, e.Count, p.name(e)))
	case "note":
		p.line("  " + e.Text)
	case "progress":
		p.bytes(e)
	case "waiting":
		p.wait(e)
	case "done":
		p.clear()
	}
}

// event prints an event as JSON: of those that come every moment only some.
func (p *progress) event(e apply.Event) {
	switch e.Kind {
	case "waiting":
		if !p.of(e.Action + e.Text).after(time.Duration(e.Seconds) * time.Second) {
			return
		}
	case "progress":
		if e.DoneBytes < e.AllBytes && !p.of(e.Path).at(p.now()) {
			return
		}
	}
	e.Text = p.s.spelling().Sentence(e.Text)
	if data, err := json.Marshal(e); err == nil {
		fmt.Fprintln(p.s.errOut, string(data))
	}
}

func (p *progress) name(e apply.Event) string {
	if name, ok := actionNames[e.Action]; ok {
		return name
	}
	return e.Text
}

// bytes says how much of all files is here; with --verbose also each file that is whole.
func (p *progress) bytes(e apply.Event) {
	now := p.now()
	whole := e.DoneBytes >= e.AllBytes
	if p.verbose && whole {
		p.line(fmt.Sprintf("  %s: %s", e.Path, units.Short(e.AllBytes)))
	}
	if e.TotalBytes == 0 { // of one file alone
		if e.AllBytes < timeLeftFrom || whole {
			return
		}
		e.TotalDoneBytes, e.TotalBytes = e.DoneBytes, e.AllBytes
	}
	p.speed.note(now, e.ArrivedBytes)
	text := fmt.Sprintf("  %s of %s", units.Short(e.TotalDoneBytes), units.Short(e.TotalBytes))
	if rate := p.speed.perSecond(); rate > 0 {
		text += fmt.Sprintf(", %s/s", units.Short(int64(rate)))
		if e.ArrivedBytes >= timeLeftFrom {
			left := time.Duration(float64(e.TotalBytes-e.TotalDoneBytes) / rate * float64(time.Second))
			text += ", " + lasting(left) + " left"
		}
	}
	switch {
	case !p.moving && p.of("progress").at(now):
		p.line(text)
	case p.moving && now.Sub(p.speed.shown) >= redrawEvery:
		p.speed.shown = now
		p.draw(text)
		p.counts = true
	}
}

// wait says what is waited for and how long so far.
func (p *progress) wait(e apply.Event) {
	text := fmt.Sprintf("  %s: %s so far", e.Text, lasting(time.Duration(e.Seconds)*time.Second))
	if e.Usual != "" {
		text += fmt.Sprintf(" (%s)", e.Usual)
	}
	switch {
	case p.moving:
		p.draw(text)
	case p.of(e.Action + e.Text).after(time.Duration(e.Seconds) * time.Second):
		p.line(text)
	}
}

// lasting writes a time of work: "45 s", "2 min 50 s", "1 h 20 min".
func lasting(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

func (p *progress) draw(text string) {
	fmt.Fprintf(p.s.errOut, "\r\x1b[K%s", termtext.Cut(termtext.Line(text), p.s.columnsOf(p.s.errOut)-1))
	p.drawn, p.counts = true, false
}

// line prints a whole line, over a moving one if there is one.
func (p *progress) line(text string) {
	p.clear()
	fmt.Fprintln(p.s.page(p.s.errOut), termtext.Line(text))
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.s.errOut, "\r\x1b[K")
		p.drawn = false
	}
}

// say prints a line between those of the run.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(text)
}

// end leaves what is here of a download on the screen, and takes away what was waited for.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn && p.counts {
		fmt.Fprintln(p.s.errOut)
		p.drawn = false
	}
	p.clear()
}

// seldom lets few of many lines through: the first after two seconds, then ever fewer, down to one in 30 seconds.
type seldom struct {
	began time.Time     // of the work; zero: not yet
	next  time.Duration // from then
	gap   time.Duration
}

func (p *progress) of(what string) *seldom {
	if p.seldom[what] == nil {
		p.seldom[what] = &seldom{next: 2 * time.Second, gap: 5 * time.Second}
	}
	return p.seldom[what]
}

// after reports whether a line is due when the work has lasted so long.
func (s *seldom) after(lasted time.Duration) bool {
	if lasted < s.next {
		return false
	}
	s.next, s.gap = lasted+s.gap, min(2*s.gap, 30*time.Second)
	return true
}

// at reports whether a line is due now.
func (s *seldom) at(now time.Time) bool {
	if s.began.IsZero() {
		s.began = now
	}
	return s.after(now.Sub(s.began))
}

// speedSpan is how far back the speed of a download looks.
const speedSpan = 20 * time.Second

// speed is that of the last moments.
type speed struct {
	samples []arrival
	shown   time.Time // when the moving line was last drawn
}

type arrival struct {
	at    time.Time
	bytes int64 // in all, by then
}

// note keeps a sample for every half second.
func (s *speed) note(now time.Time, bytes int64) {
	if n := len(s.samples); n > 1 && now.Sub(s.samples[n-2].at) < time.Second/2 {
		s.samples[n-1] = arrival{now, bytes}
		return
	}
	s.samples = append(s.samples, arrival{now, bytes})
	for len(s.samples) > 2 && now.Sub(s.samples[0].at) > speedSpan {
		s.samples = s.samples[1:]
	}
}

// perSecond is 0 while there is no second to speak of.
func (s *speed) perSecond() float64 {
	if len(s.samples) < 2 {
		return 0
	}
	first, last := s.samples[0], s.samples[len(s.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds < 1 {
		return 0
	}
	return float64(last.bytes-first.bytes) / seconds
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"slipway/installer/operate"
	"slipway/termtext"
)

const (
	watchEvery    = time.Second
	progressEvery = 5 * time.Second // of one request, where lines cannot be drawn over
)

// watchStatus shows the status until Ctrl-C: drawn over and over on a terminal, elsewhere a line for whatever changes.
func (s *session) watchStatus(look func() (operate.StatusAnswer, error)) error {
	file, ok := s.out.to.(*os.File)
	draws := ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
	teller := newStatusTeller(s.out)
	for s.ctx.Err() == nil && s.out.err == nil {
		a, err := look()
		if s.ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		if draws { // past the printer that takes control characters out
			drawStatus(file, a)
		} else {
			teller.tell(a, time.Now())
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(watchEvery):
		}
	}
	return context.Cause(s.ctx)
}

// drawStatus writes over what was drawn before. Lines are cut at the terminal's width, so that none takes two.
func drawStatus(w *os.File, a operate.StatusAnswer) {
	width, height := 80, 24
	if w, h, err := term.GetSize(int(w.Fd())); err == nil && w > 0 && h > 2 {
		width, height = w, h
	}
	var page bytes.Buffer
	printStatus(&page, a)
	lines := strings.Split(strings.TrimSuffix(page.String(), "\n"), "\n")
	lines = append(lines[:min(len(lines), height-2)], "Ctrl-C ends this.")
	var out strings.Builder
	out.WriteString("\x1b[H")
	for _, line := range lines {
		out.WriteString(termtext.Cut(termtext.Line(line), width) + "\x1b[K\r\n")
	}
	out.WriteString("\x1b[J")
	io.WriteString(w, out.String())
}

// statusTeller prints changes as plain lines, each with the time of day.
type statusTeller struct {
	w     io.Writer
	state string
	shown map[string]shownRequest // nil until the first look at a server's requests
}

type shownRequest struct {
	phase string
	at    time.Time
}

func newStatusTeller(w io.Writer) *statusTeller {
	return &statusTeller{w: w}
}

func (t *statusTeller) tell(a operate.StatusAnswer, now time.Time) {
	line := func(text string) { fmt.Fprintf(t.w, "%s %s\n", now.Format("15:04:05"), text) }
	if state := serverSentence(a.Server); state != t.state {
		line(state)
		t.state = state
	}
	if a.Live == nil {
		return
	}
	first := t.shown == nil
	seen := map[string]shownRequest{}
	for i := len(a.Live.Requests) - 1; i >= 0; i-- { // the earliest start first
		r := a.Live.Requests[i]
		had := t.shown[r.ID]
		if first && r.Ended() { // before we looked: no change, and the time of day would be wrong
			had = shownRequest{r.Phase, now}
		}
		if r.Phase != had.phase || !r.Ended() && now.Sub(had.at) >= progressEvery {
			text := underWay(r)
			if r.Ended() {
				text = outcome(r)
			}
			line(shortID(r.ID) + " " + text)
			had = shownRequest{r.Phase, now}
		}
		seen[r.ID] = had
	}
	t.shown = seen
}

func watchFlag() cli.Flag {
	return &cli.BoolFlag{Name: "watch", Usage: "go on showing it until Ctrl-C"}
}

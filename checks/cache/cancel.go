package cache

import (
	"context"
	"errors"
	"time"

	"slipway/checks/client"
	"slipway/checks/needle"
	"slipway/checks/record"
)

var errLeft = errors.New("left")

// cancelledReading leaves in the middle of reading, then asks with another early value, then with the first one. A
// server that kept a half-made state of the first text must not answer from it.
func cancelledReading(st *stage) error {
	d := st.newDocument()
	timed, err := st.asked(d.fresh(st), 0, "")
	if err != nil {
		return err
	}
	took := timed.Ended.Sub(timed.Started)
	if at := timed.FirstPiece(); !at.IsZero() {
		took = at.Sub(timed.Started)
	}
	ctx, leave := context.WithCancelCause(st.ctx)
	timer := time.AfterFunc(took/2, func() { leave(errLeft) })
	reply, err := st.s.Chat(ctx, st.request(st.first(d, needle.Ask(d.names[0])), nil))
	timer.Stop()
	leave(nil)
	if err != nil && !errors.Is(err, errLeft) {
		return err
	}
	st.notes = "left after " + (took / 2).Round(time.Millisecond).String()
	if err == nil && len(reply.Pieces) > 0 {
		st.notes = "the server was done before it could be left"
	}
	other := d.changed(st, 0)
	if _, err := st.asked(other, 0, d.codes[0]); err != nil {
		return err
	}
	back, err := st.asked(d, 0, other.codes[0])
	if err == nil {
		st.notes += "; then " + cachedWords(back)
	}
	return err
}

// cancelledAnswering leaves at the first piece of an answer that lists every code, then asks for the whole.
func cancelledAnswering(st *stage) error {
	d := st.newDocument()
	ctx, leave := context.WithCancelCause(st.ctx)
	request := st.request(st.first(d, needle.AskAll), nil)
	request.OnPiece = func(string, bool) { leave(errLeft) }
	_, err := st.s.Chat(ctx, request)
	leave(nil)
	if err != nil && !errors.Is(err, errLeft) {
		return err
	}
	reply, err := st.ask(st.first(d, needle.AskAll), nil)
	if err != nil {
		return err
	}
	st.notes = cachedWords(reply)
	found := count(d, reply)
	st.hits, st.of = st.hits+found, st.of+len(d.codes)
	if found == len(d.codes) {
		return nil
	}
	without, err := st.ask(st.first(d.fresh(st), needle.AskAll), nil)
	st.last = reply
	if err != nil {
		return err
	}
	if n := count(d, without); n > found {
		st.bad(record.Fail, "%d of %d codes after a cancelled answer, and %d without the cache", found, len(d.codes), n)
	} else if n == 0 {
		st.bad(record.Unknown, "the model finds none of the codes without the cache either, so nothing can be said")
	}
	return nil
}

func count(d document, reply *client.Reply) int {
	found := 0
	for i := range d.codes {
		if needle.Found(reply.Answer(), d.names[i], d.codes[i]) {
			found++
		}
	}
	return found
}

package web

import (
	"bytes"
	"encoding/json"
	"net/http"

	"slipway/engine/api/turn"
)

// Plain is a reply sent in one piece, with white space in front while it is awaited: JSON allows it there.
type Plain struct{ Record *Record }

// Idle sends white space. From then on the status is 200.
func (p Plain) Idle() error {
	if p.Record.Status == 0 {
		setJSON(p.Record.Header())
	}
	if _, err := p.Record.Write([]byte(" ")); err != nil {
		return err
	}
	return http.NewResponseController(p.Record).Flush()
}

// Finish sends the reply, or the failure as the body where white space was sent; it gives the failure back.
func (p Plain) Finish(document any, failure *turn.Error) *turn.Error {
	if failure != nil && p.Record.Status == 0 {
		return failure
	}
	if failure != nil {
		_, document = p.Record.Wire.Error(failure)
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return turn.AsError(err)
	}
	if p.Record.Status == 0 {
		setJSON(p.Record.Header())
	}
	p.Record.Write(body.Bytes())
	return failure
}

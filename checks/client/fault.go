package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slipway/fault"
	"slipway/termtext"
	"strings"
)

// Kind is a way in which a server can fail to answer.
type Kind string

const (
	BadAddress  Kind = "bad-address"
	NoModel     Kind = "no-model"
	Unreachable Kind = "unreachable"
	Silent      Kind = "silent"       // nothing came for longer than was to be waited
	Refused     Kind = "refused"      // a status other than 200
	NotJSON     Kind = "not-json"     // a web page, most often: another program, a proxy, a wrong path
	CutStream   Kind = "cut-stream"   // the stream ended and never said that it was whole
	BrokeOff    Kind = "broke-off"    // an error in the middle of a stream
	CutReply    Kind = "cut-reply"    // a reply in one piece that ended too early
	WrongShape  Kind = "wrong-shape"  // JSON, but not a chat completion
	OverTheTop  Kind = "over-the-top" // more bytes than any reply may have
	BadCounting Kind = "bad-counting" // the server's own numbers contradict each other
)

// Fault is a server that did not answer as the API says. Why is a clause for people, without a capital or a stop.
type Fault struct {
	Kind   Kind
	Status int // of HTTP, where there was one
	Why    string
	Param  string // the request's member that was refused, where the server names it
	Pieces int    // pieces of text that had come before
}

func (f *Fault) Error() string { return f.Why }

// refused words a status other than 200.
func (s *Server) refused(response *http.Response, body []byte) *Fault {
	said, param := s.errorIn(body)
	if said == "" {
		said = s.scrub(head(body))
	}
	f := &Fault{Kind: Refused, Status: response.StatusCode, Param: param}
	f.Why = fmt.Sprintf("the server answered with status %d", response.StatusCode)
	switch {
	case looksLikeHTML(response, body):
		f.Why += ", and a web page instead of JSON: " + s.scrub(head(body))
	case response.StatusCode >= 300 && response.StatusCode < 400:
		f.Why += ", a redirection, which is not followed: give the final address"
	case said != "":
		f.Why += ": " + said
	}
	return f
}

func (s *Server) notJSON(response *http.Response, body []byte) *Fault {
	what := "something that is no JSON"
	if looksLikeHTML(response, body) {
		what = "a web page (HTML) instead of JSON"
	}
	return &Fault{Kind: NotJSON, Status: response.StatusCode, Why: fmt.Sprintf("%s answered with %s: %s", s.Base, what,
		s.scrub(head(body)))}
}

// broken words a connection that ended in the middle, our own stop included.
func (s *Server) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return &Fault{Kind: CutReply,
		Why: "the connection ended before the reply was whole: " + s.scrub(fault.Innermost(err))}
}

// errorIn finds the message in the error objects that servers send: {"error":{"message"}}, {"error":"…"}, {"detail"}.
func (s *Server) errorIn(body []byte) (message, param string) {
	var outer struct {
		Error  json.RawMessage `json:"error"`
		Detail any             `json:"detail"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return "", ""
	}
	var inner struct {
		Message string `json:"message"`
		Param   any    `json:"param"`
	}
	var text string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "":
		name, _ := inner.Param.(string)
		return s.scrub(inner.Message), Printable(name)
	case json.Unmarshal(outer.Error, &text) == nil && text != "":
		return s.scrub(text), ""
	case outer.Detail != nil:
		return s.scrub(fmt.Sprint(outer.Detail)), ""
	}
	return "", ""
}

// scrub makes others' text fit to print: no key, no control characters, not long.
func (s *Server) scrub(text string) string {
	if s.Key != "" {
		text = strings.ReplaceAll(text, s.Key, "(key)")
	}
	return Printable(text)
}

// Printable is text of others on one line, at most 400 bytes of it.
func Printable(text string) string { return termtext.Short(text, 400) }

func head(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > 120 {
		text = strings.ToValidUTF8(text[:120], "") + "…"
	}
	if text == "" {
		return "(nothing)"
	}
	return text
}

func looksLikeHTML(response *http.Response, body []byte) bool {
	start := strings.ToLower(strings.TrimSpace(string(body[:min(len(body), 200)])))
	return strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") ||
		strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
}

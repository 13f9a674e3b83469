package hub

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"slipway/fault"
)

// authorize adds the token if, and only if, the request goes to the manifest's origin.
func (c *Client) authorize(r *http.Request) {
	r.Header.Del("Authorization")
	origin, err := url.Parse(c.config.Origin)
	if err != nil || c.config.Token == "" || c.anonymous.Load() || !sameOrigin(origin, r.URL) {
		return
	}
	r.Header.Set("Authorization", "Bearer "+c.config.Token)
}

// carriesToken reports whether the answer is to a request with a token.
func carriesToken(answer *http.Response) bool {
	return answer.Request.Header.Get("Authorization") != ""
}

// AccessKind is what a refusal means.
type AccessKind string

const (
	Gated       AccessKind = "gated"              // the page asks for an agreement first
	BadToken    AccessKind = "bad token"          // the hub does not know the token
	Disabled    AccessKind = "disabled"           // the hub took the repository down
	Hidden      AccessKind = "missing or private" // 401 without a token: the hub does not say which
	Forbidden   AccessKind = "forbidden"          // the token is known and may not read this
	NoRepo      AccessKind = "no such repository"
	NoRevision  AccessKind = "no such revision"
	NoEntry     AccessKind = "no such file"
	MirrorNoKey AccessKind = "mirror asks for a token" // and a mirror never gets ours
	TokenShape  AccessKind = "not a token"             // no header can carry it
)

// AccessError: the hub answered, and the answer is no. Page is where a person can do something about it, or "".
type AccessError struct {
	Kind      AccessKind
	Subject   string // repository or file
	Page      string
	Said      string // the hub's own words, control characters removed
	RequestID string
}

func (e *AccessError) Error() string {
	said := ""
	if e.Said != "" {
		said = fmt.Sprintf(" (the hub says: %q)", e.Said)
	}
	if e.RequestID != "" {
		said += " [request " + e.RequestID + "]"
	}
	switch e.Kind {
	case Gated:
		return fmt.Sprintf("%s is gated%s. Accept its conditions at %s, then set HF_TOKEN to a token of that account.",
			e.Subject, said, e.Page)
	case BadToken:
		return fmt.Sprintf("the hub does not accept the token in HF_TOKEN or the token file%s. Make a new one at "+
			"%s, or unset it for public models.", said, e.Page)
	case Disabled:
		return fmt.Sprintf("the hub has disabled %s%s.", e.Subject, said)
	case Hidden:
		return fmt.Sprintf("%s does not exist, or it is private%s. If it is yours, set HF_TOKEN.", e.Subject, said)
	case Forbidden:
		return fmt.Sprintf("the token may not read %s%s. Ask for access at %s.", e.Subject, said, e.Page)
	case MirrorNoKey:
		return fmt.Sprintf("the mirror asks for a token to read %s%s, and slipway sends a token to no mirror. Unset "+
			"HF_ENDPOINT, so that the hub itself is asked. If the model is gated, accept its conditions at %s and set "+
			"HF_TOKEN.", e.Subject, strings.Replace(said, "the hub says", "it says", 1), e.Page)
	case TokenShape:
		return fmt.Sprintf("the token in %s has a space, a line break or a character in it that no token has, so it "+
			"was sent nowhere. Copy it again from %s.", e.Subject, e.Page)
	}
	return fmt.Sprintf("%s: %s%s.", e.Subject, e.Kind, said)
}

// Fault distinguishes what is not there from what a token or an agreement opens.
func (e *AccessError) Fault() fault.Fault {
	switch e.Kind {
	case NoRepo, NoRevision, NoEntry, Disabled:
		return fault.Fault{Class: fault.Stale, Step: fault.GetAccess}
	}
	return fault.Fault{Class: fault.Auth, Step: fault.GetAccess}
}

// refusal reads a 401, 403 or 404 of an endpoint. nil when the answer is no refusal of the hub's.
func (c *Client) refusal(answer *http.Response, endpoint, repo, subject string) *AccessError {
	code, said := answer.Header.Get("X-Error-Code"), plain(answer.Header.Get("X-Error-Message"))
	e := &AccessError{Subject: subject, Said: said, RequestID: requestID(answer), Page: c.config.Origin + "/" + repo}
	lower := strings.ToLower(said)
	switch {
	case answer.StatusCode != 401 && answer.StatusCode != 403 && answer.StatusCode != 404:
		return nil
	case answer.StatusCode != 404 && strings.Contains(lower, "disabled"): // whoever says it: no token opens it
		e.Kind = Disabled
	case answer.StatusCode != 404 && !c.fromOrigin(endpoint):
		e.Kind = MirrorNoKey
	case code == "GatedRepo":
		e.Kind = Gated
	case strings.Contains(lower, "invalid credentials") || answer.StatusCode == 401 && carriesToken(answer):
		e.Kind, e.Page = BadToken, c.config.Origin+"/settings/tokens"
	case code == "RevisionNotFound":
		e.Kind = NoRevision
	case code == "EntryNotFound":
		e.Kind = NoEntry
	case answer.StatusCode == 403:
		e.Kind = Forbidden
	case answer.StatusCode == 401:
		e.Kind = Hidden
	default:
		e.Kind = NoRepo
	}
	return e
}

// dropToken reports whether asking again without the token makes sense: public repositories answer 401 to a stale
// token. The refusal is remembered, and shown if asking without a token fails too.
func (c *Client) dropToken(answer *http.Response, endpoint, repo string) bool {
	if answer.StatusCode != 401 || !carriesToken(answer) {
		return false
	}
	if c.anonymous.CompareAndSwap(false, true) {
		c.firstRefusal.Store(c.refusal(answer, endpoint, repo, repo))
		c.tell.say(Event{Kind: Notice, Why: "The hub does not accept the token in " + c.config.TokenFrom +
			"; going on without it."})
	}
	return true
}

// firstOr is the refusal of the token, if there was one, else e.
func (c *Client) firstOr(e *AccessError) *AccessError {
	if earlier := c.firstRefusal.Load(); e != nil && earlier != nil {
		return earlier
	}
	return e
}

func requestID(answer *http.Response) string {
	for _, name := range []string{"X-Request-Id", "X-Amzn-Trace-Id", "X-Amz-Cf-Id"} {
		if id := answer.Header.Get(name); id != "" {
			return plain(id)
		}
	}
	return ""
}

// plain makes foreign text fit for a terminal: printable characters only, 200 at most, secrets removed.
func plain(s string) string {
	s = strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return c
	}, s)
	if runes := []rune(s); len(runes) > 200 {
		s = string(runes[:200])
	}
	return redactText(s)
}

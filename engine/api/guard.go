package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"slipway/engine/api/turn"
	"slipway/wire"
)

// Key is what a client must send as "Authorization: Bearer KEY" (or X-Api-Key). Only its hash is kept.
type Key struct{ sum [sha256.Size]byte }

// NewKey makes a key from its text.
func NewKey(text string) *Key { return &Key{sha256.Sum256([]byte(text))} }

// is compares in constant time: hashes have one length whatever was sent.
func (k *Key) is(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1
}

// guard refuses who may not ask. It looks at the request's head only.
type guard struct {
	key       *Key            // nil where none is needed
	originKey *Key            // that pages of the allowed origins send
	hosts     map[string]bool // names besides loopback and the connection's own address, lower case
	origins   []string        // whose pages may ask, as [wire.ReadOrigin] gives them
}

// check gives the allowed origin that a browser asks for, empty for all others. It may be there beside a refusal, which
// that page may then read. Pages of allowed origins reach the inference paths only.
func (g *guard) check(r *http.Request, inference bool) (origin string, failure *turn.Error) {
	local := localAddr(r)
	if local.IsValid() && !local.IsLoopback() && !local.IsPrivate() && !local.IsLinkLocalUnicast() {
		return "", forbidden("public_address", "this server answers on loopback and private addresses only, not on "+
			local.String())
	}
	if host := hostOf(r.Host); !g.hostAllowed(host, local) {
		return "", forbidden("host_not_allowed", "the Host header does not name this server; use 127.0.0.1 or "+
			"localhost"+allowHostWords(host))
	}
	if origin, failure = g.checkOrigin(r, inference); failure != nil {
		return "", failure
	}
	key := g.key
	switch {
	case origin != "" && isPreflight(r): // browsers send no key with it
		return origin, nil
	case origin != "" && g.originKey != nil:
		key = g.originKey
	case key == nil || r.URL.Path == "/health" && isLoopback(r.RemoteAddr):
		return origin, nil
	}
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		sent = r.Header.Get("X-Api-Key")
	}
	if !key.is(strings.TrimSpace(sent)) {
		message := "the API key is wrong"
		if sent == "" {
			message = "this server needs its API key: send it as Authorization: Bearer KEY"
		}
		return origin, &turn.Error{Kind: turn.Unauthorized, Sentence: message, Code: "invalid_api_key"}
	}
	return origin, nil
}

// checkOrigin refuses pages of other sites, and gives the origin of a page that may ask.
func (g *guard) checkOrigin(r *http.Request, inference bool) (string, *turn.Error) {
	sent := r.Header.Values("Origin")
	if len(sent) > 1 {
		return "", forbidden("origin_not_allowed", "a request has one Origin header at most")
	}
	origin := strings.Join(sent, "")
	own := origin == "" || strings.EqualFold(origin, "http://"+r.Host)
	switch {
	case !own && !wire.OriginIn(g.origins, origin):
		words := "requests from other sites' pages are refused (Origin)"
		if _, err := wire.ReadOrigin(origin); err == nil {
			words += "; where this page may ask, allow it with --allow-origin " + origin
		}
		return "", forbidden("origin_not_allowed", words)
	case !own && !inference:
		return "", forbidden("origin_not_allowed", "pages of an allowed origin reach the paths of the API only, not "+
			"this one")
	case !own:
		return origin, nil
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "", forbidden("origin_not_allowed", "requests from other sites' pages are refused (Sec-Fetch-Site)")
	}
	return "", nil
}

func forbidden(code, message string) *turn.Error {
	return &turn.Error{Kind: turn.Forbidden, Sentence: message, Code: code}
}

// hostOf is the name or the address in a Host header, lower case.
func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// hostAllowed defends against names that an attacker's DNS points at us: an address literal cannot be rebound.
func (g *guard) hostAllowed(host string, local netip.Addr) bool {
	if host == "localhost" || g.hosts[host] {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.Unmap() == local)
}

// allowHostWords say how a name is allowed; nothing where it cannot be.
func allowHostWords(host string) string {
	if name, err := wire.ReadHost(host); err == nil {
		return ", or allow the name with --allow-host " + name
	}
	return ""
}

// isPreflight reports whether a browser asks what it may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// share lets a page of an allowed origin read the answer.
func share(h http.Header, origin string) {
	h.Add("Vary", "Origin")
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Request-Id, Retry-After, X-Request-Id")
	}
}

// preflightSeconds is how long a browser may keep the answer to a preflight: the longest time that Chrome takes.
const preflightSeconds = "7200"

// answerPreflight allows the methods of a path, and all headers: none is a way around the key.
func answerPreflight(w http.ResponseWriter, r *http.Request, methods []string) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", preflightSeconds)
	w.WriteHeader(http.StatusNoContent)
}

func localAddr(r *http.Request) netip.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if addr == nil {
		return netip.Addr{}
	}
	ap, _ := netip.ParseAddrPort(addr.String())
	return ap.Addr().Unmap().WithZone("")
}

func isLoopback(remote string) bool {
	ap, err := netip.ParseAddrPort(remote)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

// jsonBody refuses a POST that a web page could send without asking first.
func jsonBody(r *http.Request) *turn.Error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &turn.Error{Kind: turn.WrongMedia, Code: "unsupported_media_type",
			Sentence: "the body must be sent with Content-Type: application/json"}
	}
	switch r.Header.Get("Content-Encoding") {
	case "", "identity", "gzip":
		return nil
	}
	return &turn.Error{Kind: turn.WrongMedia, Code: "unsupported_media_type",
		Sentence: "the body must be sent without Content-Encoding, or with gzip"}
}

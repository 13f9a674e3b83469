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
	key   *Key            // nil where none is needed
	hosts map[string]bool // names besides loopback and the connection's own address, lower case
}

func (g *guard) check(r *http.Request) *turn.Error {
	local := localAddr(r)
	if local.IsValid() && !local.IsLoopback() && !local.IsPrivate() && !local.IsLinkLocalUnicast() {
		return forbidden("public_address", "this server answers on loopback and private addresses only, not on "+
			local.String())
	}
	if !g.hostAllowed(r.Host, local) {
		return forbidden("host_not_allowed", "the Host header does not name this server; use 127.0.0.1 or localhost, "+
			"or allow the name at start (--allow-host)")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) {
		return forbidden("origin_not_allowed", "requests from other sites' pages are refused (Origin)")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return forbidden("origin_not_allowed", "requests from other sites' pages are refused (Sec-Fetch-Site)")
	}
	if g.key == nil || r.URL.Path == "/health" && isLoopback(r.RemoteAddr) {
		return nil
	}
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		sent = r.Header.Get("X-Api-Key")
	}
	if !g.key.is(strings.TrimSpace(sent)) {
		message := "the API key is wrong"
		if sent == "" {
			message = "this server needs its API key: send it as Authorization: Bearer KEY"
		}
		return &turn.Error{Kind: turn.Unauthorized, Sentence: message, Code: "invalid_api_key"}
	}
	return nil
}

func forbidden(code, message string) *turn.Error {
	return &turn.Error{Kind: turn.Forbidden, Sentence: message, Code: code}
}

// hostAllowed defends against names that an attacker's DNS points at us: an address literal cannot be rebound.
func (g *guard) hostAllowed(hostport string, local netip.Addr) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || g.hosts[host] {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.Unmap() == local)
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

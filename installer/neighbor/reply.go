package neighbor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"slipway/installer/process"
	"slipway/termtext"
)

// reply is one answer of a foreign server. Everything in it is untrusted.
type reply struct {
	status int // 0: no answer; failed says why
	header http.Header
	body   []byte
	json   any // nil where the body is not JSON
	failed error
	silent bool // it accepted the connection and did not answer in time: busy or wedged, not dead
}

func (r reply) protected() bool { return r.status == 401 || r.status == 403 }

// at walks objects by key. ok is false where a key is missing or something on the way is no object.
func (r reply) at(path ...string) (any, bool) { return at(r.json, path...) }

func at(value any, path ...string) (any, bool) {
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

func (r reply) text(path ...string) (string, bool) {
	v, _ := r.at(path...)
	s, ok := v.(string)
	return s, ok
}

func (r reply) flag(path ...string) (value, ok bool) {
	v, _ := r.at(path...)
	value, ok = v.(bool)
	return value, ok
}

func (r reply) number(path ...string) (float64, bool) {
	v, _ := r.at(path...)
	return number(v)
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func (r reply) object(path ...string) bool {
	v, _ := r.at(path...)
	_, ok := v.(map[string]any)
	return ok
}

func (r reply) has(path ...string) bool { _, ok := r.at(path...); return ok }

// list returns the elements of an array; ok is false where there is none. An empty array is ok.
func (r reply) list(path ...string) ([]any, bool) {
	v, _ := r.at(path...)
	l, ok := v.([]any)
	return l, ok
}

// ownedBy is data[0].owned_by of /v1/models.
func (r reply) ownedBy() string {
	if l, _ := r.list("data"); len(l) > 0 {
		owner, _ := at(l[0], "owned_by")
		s, _ := owner.(string)
		return s
	}
	return ""
}

// listed are the ids of /v1/models.
func (r reply) listed() []string {
	l, _ := r.list("data")
	var ids []string
	for _, item := range l {
		if id, _ := at(item, "id"); id != nil {
			if s, ok := id.(string); ok {
				ids = append(ids, s)
			}
		}
	}
	return ids
}

const maxReplyBytes = 1 << 20

// look is one look at a server: each path is asked at most once, so that all its tests see the same moment.
type look struct {
	ctx      context.Context
	base     string
	port     int
	pid      int
	timeout  time.Duration
	replies  map[string]reply
	foreign  tools // the kind's own tools, where they may be run; empty while only looking
	stopping bool
	ours     *localPorts
}

// localPorts are the ports from which we asked: connections from them are our own and no sign of work.
type localPorts struct {
	mu    sync.Mutex
	ports map[uint16]bool
}

func (p *localPorts) add(c net.Conn) {
	if a, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
		p.mu.Lock()
		p.ports[a.Port()] = true
		p.mu.Unlock()
	}
}

func (p *localPorts) has(port uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ports[port]
}

// children are the ports on which the children of the server's process listen.
func (l *look) children() ([]int, error) {
	all, err := process.Listeners(l.ctx, 0)
	return portsOf(all, descendants(l.pid)...), err
}

func (l *look) get(path string) reply {
	if r, ok := l.replies[path]; ok {
		return r
	}
	r := l.ask(http.MethodGet, path, nil)
	l.replies[path] = r
	return r
}

func (l *look) post(path string, body any) reply {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // our own values
	}
	return l.ask(http.MethodPost, path, b)
}

// ask goes to loopback only, without proxy, redirects, cookies or kept connections.
func (l *look) ask(method, path string, body []byte) reply {
	ctx, cancel := context.WithTimeout(l.ctx, l.timeout)
	defer cancel()
	transport := &http.Transport{
		Proxy:             nil,
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, network, address)
			if err == nil {
				l.ours.add(c)
			}
			return c, err
		},
		MaxResponseHeaderBytes: 64 << 10,
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	request, err := http.NewRequestWithContext(ctx, method, l.base+path, bytes.NewReader(body))
	if err != nil {
		return reply{failed: err}
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{failed: err, silent: errors.Is(err, context.DeadlineExceeded)}
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, maxReplyBytes+1))
	if err != nil {
		return reply{failed: err, silent: errors.Is(err, context.DeadlineExceeded)}
	}
	r := reply{status: response.StatusCode, header: response.Header, body: b}
	if len(b) > maxReplyBytes {
		return r // not JSON as far as we care
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			r.json = value
		}
	}
	return r
}

// plain makes foreign text fit to print: only visible characters, on one line, at most 80 of them.
func plain(s string) string { return termtext.Name(s, 80) }

// quoted is plain in quotation marks: a name must not read as a part of the sentence around it.
func quoted(s string) string { return strconv.Quote(plain(s)) }

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func baseURL(address netip.Addr, port int) string {
	return "http://" + net.JoinHostPort(address.String(), strconv.Itoa(port))
}

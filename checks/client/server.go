// Package client talks to any server with OpenAI's chat completions and reports exactly what it received: the pieces of
// a stream with the client's own clock, the usage as the server gave it, what contradicts itself, and each way in which
// a reply can fail to be one. It judges a peer's server as it judges ours.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slipway/fault"
	"slipway/wire"
	"strings"
	"time"
)

// Server is one model behind one address. The zero Patience waits as long as it takes.
type Server struct {
	Base     string        // "http://127.0.0.1:8008/v1"
	Model    string        // empty until Identify has asked
	Key      string        // never printed; removed from every text that is received
	Patience time.Duration // the longest silence that is waited for
	// DraftTokens is how many tokens a server of ours drafts at a time where a Request does not say; nil: as it is set.
	DraftTokens *int

	http    *http.Client
	lacks   map[string]bool // members of requests that this server has refused
	Tokens  *Tokenizer      // nil until FindTokenizer has asked, and where there is none
	Details Identity
}

// Identity is what a server says of itself. Empty and 0 where it does not say.
type Identity struct {
	Model        string `json:"model"`
	Revision     string `json:"revision"`
	OwnedBy      string `json:"owned_by"`
	WindowTokens int    `json:"window_tokens"`
	Product      string `json:"product"` // of /health: ours only
	Version      string `json:"version"`

	PrefillPolicy string `json:"prefill_policy"` // ours only: "exact", or the name of an approximation
	KVFormat      string `json:"kv_format"`

	Draft           string `json:"draft,omitempty"` // ours only: none, mtp or dflash2
	DraftTokens     int    `json:"-"`               // proposed at a time, where a request does not say
	MostDraftTokens int    `json:"-"`               // that can be; 0: nothing drafts
}

// New takes an address as people write it: with or without /v1, with or without the path of an endpoint.
func New(address, model, key string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, &Fault{Kind: BadAddress, Why: fmt.Sprintf("%q is no address such as http://127.0.0.1:8008/v1",
			address)}
	}
	if u.User != nil || u.RawQuery != "" {
		return nil, &Fault{Kind: BadAddress, Why: "an address may hold no user name, password or query: give a key " +
			"by --key-env or --key-file"}
	}
	path := strings.TrimSuffix(u.Path, "/")
	for _, tail := range []string{"/chat/completions", "/completions", "/models"} {
		path = strings.TrimSuffix(path, tail)
	}
	if path == "" {
		path = "/v1"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if loopback(u.Hostname()) {
		transport.Proxy = nil
	}
	return &Server{
		Base: u.Scheme + "://" + u.Host + path, Model: model, Key: key, lacks: map[string]bool{},
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a key goes nowhere that was not named
		}},
	}, nil
}

func loopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

// root is the address without the last part, where servers keep what is not OpenAI's.
func (s *Server) root() string { return strings.TrimSuffix(s.Base, "/v1") }

// Identify learns the model's name, where none was given, and what else the server says of itself.
func (s *Server) Identify(ctx context.Context) error {
	var list struct {
		Data []struct {
			ID            string `json:"id"`
			OwnedBy       string `json:"owned_by"`
			Revision      string `json:"revision"`
			ContextWindow int    `json:"context_window"` // ours
			MaxModelLen   int    `json:"max_model_len"`  // vLLM
			Meta          struct {
				Context int `json:"n_ctx"` // llama.cpp
			} `json:"meta"`
		} `json:"data"`
	}
	err := s.getJSON(ctx, s.Base+"/models", &list)
	if f := new(Fault); err != nil && !(s.Model != "" && errors.As(err, &f) && f.Kind == Refused &&
		f.Status == http.StatusNotFound) {
		return err // a server without a list is good enough where the model was named
	}
	if s.Model == "" {
		switch len(list.Data) {
		case 0:
			return &Fault{Kind: NoModel, Why: s.Base + " lists no model: load one there, or name one with --model"}
		case 1:
			s.Model = list.Data[0].ID
		default:
			var names []string
			for _, m := range list.Data {
				names = append(names, m.ID)
			}
			return &Fault{Kind: NoModel, Why: fmt.Sprintf("%s has several models; choose one with --model: %s", s.Base,
				Printable(strings.Join(names, ", ")))}
		}
	}
	s.Details = Identity{Model: s.Model}
	for _, m := range list.Data {
		if m.ID == s.Model {
			s.Details.OwnedBy, s.Details.Revision = m.OwnedBy, m.Revision
			s.Details.WindowTokens = max(m.ContextWindow, m.MaxModelLen, m.Meta.Context)
		}
	}
	var health wire.Health
	if s.getJSON(ctx, s.root()+"/health", &health) == nil && health.Product != "" {
		s.Details.Product, s.Details.Version = Printable(health.Product), Printable(health.Version)
	}
	var watching wire.Watching
	if s.Details.Product == wire.Product && s.getJSON(ctx, s.root()+"/slipway/requests", &watching) == nil {
		s.Details.PrefillPolicy, s.Details.KVFormat = Printable(watching.Server.PrefillPolicy),
			Printable(watching.Server.KVFormat)
		s.Details.Draft = Printable(watching.Server.Draft)
		s.Details.DraftTokens, s.Details.MostDraftTokens = watching.Server.DraftTokens, watching.Server.MostDraftTokens
	}
	return nil
}

// SetDraftTokens sets how many tokens a server of ours drafts at a time for requests that do not say; 0: none.
func (s *Server) SetDraftTokens(ctx context.Context, n int) error {
	response, err := s.send(ctx, http.MethodPost, s.root()+"/slipway/draft",
		strings.NewReader(fmt.Sprintf(`{"tokens": %d}`, n)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return s.broken(ctx, err)
	}
	return s.parse(response, body, &wire.DraftSet{})
}

func (s *Server) getJSON(ctx context.Context, address string, value any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	response, err := s.send(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return s.broken(ctx, err)
	}
	return s.parse(response, body, value)
}

// send makes one request; a status other than 200 is the caller's to judge.
func (s *Server) send(ctx context.Context, method, address string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if s.Key != "" {
		request.Header.Set("Authorization", "Bearer "+s.Key)
	}
	response, err := s.http.Do(request)
	if err != nil {
		if context.Cause(ctx) != nil {
			return nil, s.broken(ctx, err)
		}
		return nil, &Fault{Kind: Unreachable, Why: fmt.Sprintf("%s does not answer: %s", s.Base,
			s.scrub(fault.Innermost(err)))}
	}
	return response, nil
}

// parse reads a whole JSON answer, or says what came instead.
func (s *Server) parse(response *http.Response, body []byte, value any) error {
	if response.StatusCode != http.StatusOK {
		return s.refused(response, body)
	}
	if err := json.Unmarshal(body, value); err != nil {
		return s.notJSON(response, body)
	}
	return nil
}

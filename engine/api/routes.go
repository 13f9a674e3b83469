package api

import (
	"net/http"
	"slices"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// route is a path with the wire that answers it; nil for the paths that are slipway's own.
type route struct {
	web.Route
	wire web.Wire
}

// routes are all paths of the server.
type routes struct {
	exact    map[string][]*route // by path: one for each method
	patterns []*route            // the first match wins
}

func (s *Server) routes() *routes {
	all := &routes{exact: map[string][]*route{}}
	all.add(nil, s.ownRoutes())
	for _, wire := range s.wires {
		all.add(wire, wire.Routes())
	}
	return all
}

// add panics where two wires answer one path and no header tells them apart: which of them was meant is not for their
// order to decide.
func (all *routes) add(wire web.Wire, list []web.Route) {
	for _, r := range list {
		for _, there := range slices.Concat(all.exact[r.Path], all.patterns) {
			if there.Path == r.Path && there.Method == r.Method && there.Header == r.Header {
				panic("api: two wires answer " + r.Method + " " + r.Path)
			}
		}
		if strings.HasSuffix(r.Path, "/") || strings.Contains(r.Path, web.PathID) {
			all.patterns = append(all.patterns, &route{r, wire})
			continue
		}
		all.exact[r.Path] = append(all.exact[r.Path], &route{r, wire})
	}
}

// find gives the route that is meant, preferably for the request's method, and the methods that its path answers; nil
// where nothing is there.
func (all *routes) find(r *http.Request) (found *route, methods []string) {
	at := all.exact[r.URL.Path]
	if len(at) == 0 {
		for _, pattern := range all.patterns {
			if _, ok := pattern.Match(r.URL.Path); ok && (len(at) == 0 || at[0].Path == pattern.Path) {
				at = append(at, pattern)
			}
		}
	}
	header := ""
	for _, candidate := range at {
		if candidate.Header != "" && r.Header.Get(candidate.Header) != "" {
			header = candidate.Header
		}
	}
	for _, candidate := range at {
		if candidate.Header != header {
			continue
		}
		methods = append(methods, candidate.Method)
		if candidate.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		if found == nil || candidate.Method == r.Method {
			found = candidate
		}
	}
	return found, methods
}

// ownRoutes are what the server answers beside its wires. Their errors take the first wire's form.
func (s *Server) ownRoutes() []web.Route {
	get := func(path string, handle http.HandlerFunc) web.Route {
		return web.Route{Method: http.MethodGet, Path: path,
			Handle: func(rec *web.Record, r *http.Request) *turn.Error {
				handle(rec, r)
				return nil
			}}
	}
	return []web.Route{
		get("/health", s.health),
		get("/metrics", s.opt.Metrics.ServeHTTP),
		get("/slipway/requests", s.watch),
		get("/slipway/system", s.system),
		{Method: http.MethodGet, Path: "/slipway/events", Handle: s.events},
		{Method: http.MethodPost, Path: cancelPath, Handle: s.cancel},
		{Method: http.MethodPost, Path: "/slipway/reload", Handle: s.reload},
		{Method: http.MethodPost, Path: "/slipway/draft", Handle: s.draft},
	}
}

// wireOf is the wire in whose form the errors of a route are sent.
func (s *Server) wireOf(r *route) web.Wire {
	if r == nil || r.wire == nil {
		return s.wires[0]
	}
	return r.wire
}

package api

import (
	"net/http"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// Monitor answers the monitor's port: the page, which needs no key, and the parts of the API that the page
// uses, under the same guard as there.
func (s *Server) Monitor(page http.Handler) http.Handler {
	rest := s.Handler()
	open := s.guard
	open.key = nil
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health", strings.HasPrefix(r.URL.Path, "/slipway/"):
			rest.ServeHTTP(w, r)
			return
		case r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document":
			// Someone followed a link to the page: it says nothing by itself and cannot be framed, so any site may
			// link to it.
			r = r.Clone(r.Context())
			r.Header.Del("Sec-Fetch-Site")
		}
		refuse := func(e *turn.Error) {
			s.opt.Metrics.refuse(e.Code)
			web.SendError(w, s.wires[0], e)
		}
		if _, err := open.check(r, false); err != nil {
			refuse(err)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(web.Allow(w, http.MethodGet, http.MethodHead))
			return
		}
		page.ServeHTTP(w, r)
	})
}

package api

import (
	"net/http"
	"strings"
)

// Monitor answers the monitor's port: the page, which is the same for everybody and needs no key, and of the API what the
// page asks for, under the same guard as there.
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
			// Somebody followed a link to the page. Wherever from: it tells nothing by itself, and it cannot be framed.
			r = r.Clone(r.Context())
			r.Header.Del("Sec-Fetch-Site")
		}
		refuse := func(e *Error) {
			s.opt.Metrics.refuse(e.Code)
			e.write(w)
		}
		if err := open.check(r); err != nil {
			refuse(err)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(wrongMethod("GET, HEAD"))
			return
		}
		page.ServeHTTP(w, r)
	})
}

// Package monitor is the page on which a person sees what the server does. It is one page of plain HTML, CSS and
// JavaScript, embedded, without a build step; it asks only the port that it came from. It shows the
// numbers of engine/api and computes none.
package monitor

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"time"
)

//go:embed page
var files embed.FS

// kinds are the files that are served, by their ending.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// policy lets the page load its own files and ask its own port, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page answers /monitor and the files that it needs below /monitor/. Who may ask is the caller's matter.
func Page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.URL.Path == "/monitor/" {
			http.Redirect(w, r, "/monitor", http.StatusFound)
			return
		}
		name := "index.html"
		if r.URL.Path != "/monitor" {
			folder, file := path.Split(r.URL.Path)
			if folder != "/monitor/" || file == name {
				http.NotFound(w, r)
				return
			}
			name = file
		}
		content, err := files.ReadFile("page/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", kinds[path.Ext(name)])
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}

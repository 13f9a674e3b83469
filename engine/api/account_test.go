package api

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"slipway/engine/api/web"
)

func TestBugInTheMiddleOfAReplyBreaksTheConnection(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &web.Record{ResponseWriter: w, ID: "x", Wire: s.wires[0]}
		defer s.account(r, rec)
		rec.Write([]byte(`{"half":`))
		http.NewResponseController(rec).Flush()
		panic("a bug")
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("half a reply is read as if whole: %s", body)
	}
}

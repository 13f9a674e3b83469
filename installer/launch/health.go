package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Health is what GET /health of our server answers.
type Health struct {
	Product    string `json:"product"`
	Version    string `json:"version"`
	PID        int    `json:"pid"`
	Started    string `json:"started"`
	LaunchID   string `json:"launch_id"`
	Model      string `json:"model"`
	Ready      bool   `json:"ready"`
	Busy       bool   `json:"busy"`
	Active     int    `json:"active"`
	Queued     int    `json:"queued"`
	Background bool   `json:"background"`
	Draining   bool   `json:"draining"`
}

// local speaks to this machine only: no proxy, no redirect, every dial on loopback.
var local = &http.Client{
	Timeout: 2 * time.Second,
	Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext,
		ResponseHeaderTimeout: 2 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// URL is the address of our API.
func URL(port int) string { return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// AskHealth asks whoever listens on the port. An answer that is not ours is an error.
func AskHealth(ctx context.Context, port int) (Health, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, URL(port)+"/health", nil)
	if err != nil {
		return Health{}, err
	}
	response, err := local.Do(request)
	if err != nil {
		return Health{}, err
	}
	defer response.Body.Close()
	var h Health
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&h); err != nil {
		return Health{}, fmt.Errorf("the answer of port %d is not ours: %w", port, err)
	}
	if h.Product != "slipway" {
		return Health{}, fmt.Errorf("the answer of port %d is not ours", port)
	}
	return h, nil
}

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

	"slipway/wire"
)

// local speaks to this machine only: no proxy, no redirect, every dial on loopback.
var local = &http.Client{
	Timeout: 2 * time.Second,
	Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true,
		DialContext:           (&net.Dialer{Timeout: time.Second}).DialContext,
		ResponseHeaderTimeout: 2 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// URL is the address of our API.
func URL(port int) string { return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// askHealth asks whoever listens on the port. An answer that is not ours is an error.
func askHealth(ctx context.Context, port int) (wire.Health, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, URL(port)+"/health", nil)
	if err != nil {
		return wire.Health{}, err
	}
	response, err := local.Do(request)
	if err != nil {
		return wire.Health{}, err
	}
	defer response.Body.Close()
	var h wire.Health
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&h); err != nil {
		return wire.Health{}, fmt.Errorf("the answer of port %d is not ours: %w", port, err)
	}
	if h.Product != wire.Product {
		return wire.Health{}, fmt.Errorf("the answer of port %d is not ours", port)
	}
	return h, nil
}

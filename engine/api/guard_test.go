package api

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"slipway/engine/api/web"
)

// Addresses that a test machine need not have: the connection's own is given by the context, as net/http does.
func TestGuardChecksHostAndAddress(t *testing.T) {
	tests := []struct {
		name, local, host, remote, path string
		status                          int // 0: let through
	}{
		{"LAN address by its own name", "192.168.1.5:8008", "192.168.1.5:8008", "192.168.1.9:5000", "/v1/models", 401},
		{"LAN address by another's", "192.168.1.5:8008", "192.168.1.6:8008", "192.168.1.9:5000", "/v1/models", 403},
		{"allowed name", "192.168.1.5:8008", "Mac.Local:8008", "192.168.1.9:5000", "/v1/models", 401},
		{"public address", "203.0.113.5:8008", "203.0.113.5:8008", "198.51.100.9:5000", "/v1/models", 403},
		{"public IPv6 address", "[2001:db8::5]:8008", "[2001:db8::5]:8008", "[2001:db8::6]:5000", "/health", 403},
		{"private IPv6 address", "[fd00::5]:8008", "[fd00::5]:8008", "[fd00::6]:5000", "/v1/models", 401},
		{"IPv4 in IPv6 clothes", "[::ffff:10.0.0.5]:8008", "10.0.0.5:8008", "10.0.0.6:5000", "/v1/models", 401},
		{"health from the LAN", "192.168.1.5:8008", "192.168.1.5:8008", "192.168.1.9:5000", "/health", 401},
		{"health from loopback", "127.0.0.1:8008", "127.0.0.1:8008", "127.0.0.1:5000", "/health", 0},
		{"no Host", "127.0.0.1:8008", "", "127.0.0.1:5000", "/health", 403},
		{"Host is a path", "127.0.0.1:8008", "/127.0.0.1", "127.0.0.1:5000", "/health", 403},
	}
	g := guard{key: NewKey("0123456789abcdef"), hosts: map[string]bool{"mac.local": true}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			addr, err := net.ResolveTCPAddr("tcp", test.local)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, test.path, nil)
			r.Host, r.RemoteAddr = test.host, test.remote
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
			status := 0
			if _, err := g.check(r, false); err != nil {
				status = web.StatusOf(err.Kind)
			}
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
		})
	}
}

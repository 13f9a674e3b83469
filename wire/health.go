package wire

// Product is what Health.Product says of a server of ours.
const Product = "slipway"

// Health is what GET /health answers. A server is idle where Busy, Background and Draining are false and Active and
// Queued are 0.
type Health struct {
	Product    string `json:"product"`
	Version    string `json:"version"`
	PID        int    `json:"pid"`
	Started    string `json:"started"` // RFC 3339, of the process
	LaunchID   string `json:"launch_id"`
	Model      string `json:"model"`
	Ready      bool   `json:"ready"`
	Busy       bool   `json:"busy"`
	Active     int    `json:"active"`
	Queued     int    `json:"queued"`
	Background bool   `json:"background"`
	Draining   bool   `json:"draining"`
}

package api

import (
	"net/http"
	"time"

	"slipway/engine/api/web"
	"slipway/engine/serve"
	"slipway/wire"
)

// health answers GET /health. It takes no lock of the engine's, so it answers whatever the engine does.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	var status serve.Status
	if s.opt.Engine != nil {
		status = s.opt.Engine.Status()
	}
	web.SendJSON(w, http.StatusOK, wire.Health{
		Product: wire.Product, Version: s.opt.Version, PID: s.opt.PID, Started: s.opt.Started.UTC().Format(
			time.RFC3339),
		LaunchID: s.opt.LaunchID, Model: s.opt.ModelID, Ready: status.Running && !status.Draining,
		Busy:   status.Active > 0,
		Active: status.Active, Queued: status.Queued, Draining: status.Draining,
	})
}

package api

import (
	"net/http"
	"time"

	"slipway/engine/api/web"
	"slipway/engine/serve"
)

// health tells others whether this server is ready, and whether it is idle: busy, background and draining false, active
// and queued 0. It takes no lock and no memory of the engine's, so it answers whatever the engine does.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	var status serve.Status
	if s.opt.Engine != nil {
		status = s.opt.Engine.Status()
	}
	web.SendJSON(w, http.StatusOK, map[string]any{
		"product":    "slipway",
		"version":    s.opt.Version,
		"pid":        s.opt.PID,
		"started":    s.opt.Started.UTC().Format(time.RFC3339),
		"launch_id":  s.opt.LaunchID,
		"model":      s.opt.ModelID,
		"ready":      status.Running && !status.Draining,
		"busy":       status.Active > 0,
		"active":     status.Active,
		"queued":     status.Queued,
		"background": false,
		"draining":   status.Draining,
	})
}

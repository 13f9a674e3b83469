package api

import (
	"time"

	"slipway/engine/api/anthropic"
	"slipway/engine/api/ollama"
	"slipway/engine/api/openai"
	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// wires are the APIs that the server speaks. A new one is a package beside openai and a line here. The first one's
// form is that of errors on paths that belong to no wire.
func wires(turns *turn.Service, bodies *web.Bodies, keepAlive time.Duration) []web.Wire {
	return []web.Wire{
		openai.New(turns, bodies, keepAlive),
		anthropic.New(turns, bodies, keepAlive),
		ollama.New(turns, bodies, keepAlive),
	}
}

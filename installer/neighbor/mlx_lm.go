package neighbor

import (
	"strings"
	"syscall"
)

// mlx_lm.server, and dflash-serve that wraps it, have no way to say whether they work: sockets and CPU time can prove
// them busy, nothing can prove them idle. They are shown and not stopped.
var mlxLM = kind{
	id: "mlx_lm", title: "mlx_lm.server", ports: []int{8080},
	runs: func(c command) bool {
		return c.named("mlx_lm.server") || c.named("mlx_lm") && c.verb("server") ||
			c.module("mlx_lm.server") || c.module("mlx_lm") && c.verb("server")
	},
	answers: mlxLMAnswers, idle: cannotTell, signal: syscall.SIGINT,
}

var dflash = kind{
	id: "dflash", title: "dflash-serve", ports: []int{8080},
	runs:    func(c command) bool { return c.named("dflash-serve") || c.module("dflash_mlx.serve", "dflash.serve") },
	answers: mlxLMAnswers, idle: cannotTell, signal: syscall.SIGINT,
}

func mlxLMAnswers(l *look) bool {
	r := l.get("/health")
	server := r.header.Get("Server")
	return r.status == 200 && strings.HasPrefix(server, "BaseHTTP/") && strings.Contains(server, "Python/") &&
		strings.TrimSpace(string(r.body)) == `{"status": "ok"}` // with the space, unlike llama-server
}

func cannotTell(_ *look, t *sample) {
	t.isUnknown("it has no way to say whether it works; end it yourself with Ctrl-C where it was started")
}

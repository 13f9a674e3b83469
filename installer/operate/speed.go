package operate

import "slipway/checks/client"

// Speed is how fast the first answer came.
type Speed struct {
	TokensPerSecond          float64 `json:"tokens_per_second"`           // after the first token
	Tokens                   int     `json:"tokens"`                      // that it was measured over
	EstimatedTokensPerSecond float64 `json:"estimated_tokens_per_second"` // of the plan; 0: there was none
}

// fewestTimed is how many tokens give a speed that means something.
const fewestTimed = 8

// speedOf is the speed of a reply; nil where it cannot be told.
func speedOf(reply *client.Reply, estimated float64) *Speed {
	u := reply.Usage
	if u == nil || u.Decode == nil || *u.Decode <= 0 || u.Completion < fewestTimed {
		return nil
	}
	timed := u.Completion - 1 // the first token ends the prefill
	return &Speed{TokensPerSecond: float64(timed) / u.Decode.Seconds(), Tokens: timed,
		EstimatedTokensPerSecond: estimated}
}

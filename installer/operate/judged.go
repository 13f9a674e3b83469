package operate

import (
	"context"
	"strings"
	"time"

	"slipway/checks/client"
	"slipway/installer/launch"
)

// ServerInput names a server that is measured or checked.
type ServerInput struct {
	// of any OpenAI-compatible server; empty: the running server of the home
	URL      string        `json:"url"`
	Model    string        `json:"model"`       // to ask for; empty: the server's only one
	Key      string        `json:"key"`         // empty: none is sent
	Patience time.Duration `json:"patience_ns"` // longest silence of the server that is waited for, more than 0
	// DraftTokens is how many tokens a server of ours drafts at a time for these requests, 0 or more; nil: as it is
	// set.
	DraftTokens *int `json:"draft_tokens"`
}

// check refuses what is wrong whichever server it is. Of the second of two servers the flags end with a suffix.
func (in ServerInput) check(suffix string) error {
	if in.Patience <= 0 {
		return wrong("--patience must be longer than nothing")
	}
	if n := in.DraftTokens; n != nil && *n < 0 {
		return wrong("--draft-tokens%s is %d, and must be 0 or more", suffix, *n)
	}
	if strings.ContainsAny(in.Key, "\r\n\x00") || len(in.Key) > maxKeyBytes {
		return wrong("the key is no key: it has line breaks or is too long")
	}
	return nil
}

// maxKeyBytes is more than any key of a server has.
const maxKeyBytes = 4096

// Judged returns the server, already asked for its model, and the profile that it runs with: empty where it is not the
// server of the home. Errors: those of Running, a usage *Error, *client.Fault.
func (o *Operator) Judged(ctx context.Context, in ServerInput) (server *client.Server, profile string, err error) {
	if err := in.check(""); err != nil {
		return nil, "", err
	}
	if in.URL == "" {
		set, err := o.Running(ctx)
		if err != nil {
			return nil, "", err
		}
		in.URL = launch.URL(set.Port)
		if known, err := o.Settings(); err == nil {
			profile = known.Decisions.Profile.Name
		}
	}
	if server, err = client.New(in.URL, in.Model, in.Key); err != nil {
		return nil, "", err
	}
	server.Patience, server.DraftTokens = in.Patience, in.DraftTokens
	return server, profile, server.Identify(ctx)
}

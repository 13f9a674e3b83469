package operate

import (
	"context"
	"time"

	"slipway/checks/client"
	"slipway/fault"
	"slipway/installer/launch"
)

// ServerInput names a server that is measured or checked.
type ServerInput struct {
	URL      string        // of any OpenAI-compatible server; empty: the running server of the home
	Model    string        // to ask for; empty: the server's only one
	Key      string        // empty: none is sent
	Patience time.Duration // longest silence of the server that is waited for, more than 0
	// DraftTokens is how many tokens a server of ours drafts at a time for these requests; nil: as it is set.
	DraftTokens *int
}

// Judged returns the server, already asked for its model, and the profile that it runs with: empty where it is not the
// server of the home. Errors: those of Running, a usage *Error, *client.Fault.
func (o *Operator) Judged(ctx context.Context, in ServerInput) (server *client.Server, profile string, err error) {
	if in.Patience <= 0 {
		return nil, "", &Error{Text: "--patience must be longer than nothing",
			Of: fault.Fault{Class: fault.Usage, Step: fault.ReadHelp}}
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

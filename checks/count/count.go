// Package count counts the tokens of a text on any server: by its own /tokenize, else by the usage of
// a short request, else by bytes, and says which.
package count

import (
	"context"

	"slipway/checks/client"
)

// Counter counts on one server.
type Counter struct {
	server *client.Server
	Route  string // for the setup
	by     string
	head   int // tokens of the template around a user's message, where usage says it
}

const (
	byTokenizer = "tokenizer"
	byUsage     = "usage"
	byBytes     = "bytes"
)

// New finds the best way to count.
func New(ctx context.Context, s *client.Server) (*Counter, error) {
	c := &Counter{server: s}
	used, err := c.usage(ctx, "x")
	if err != nil {
		return nil, err
	}
	if used > 0 {
		c.head = used - 1
	}
	s.FindTokenizer(ctx)
	switch {
	case s.Tokens != nil:
		c.by, c.Route = byTokenizer, "by the server's /tokenize"
	case used > 0:
		c.by, c.Route = byUsage, "by the usage of short requests (the server has no /tokenize)"
	default:
		c.by, c.Route = byBytes, "by bytes, four to a token (the server has no /tokenize and gives no usage): "+
			"lengths and depths are rough"
	}
	return c, nil
}

// usage is the prompt's tokens with the template around it, 0 where the server does not say it or contradicts itself.
func (c *Counter) usage(ctx context.Context, text string) (int, error) {
	reply, err := c.server.Chat(ctx, client.Request{Messages: []client.Message{client.Say("user", text)}, MaxTokens: 1})
	if err != nil {
		return 0, err
	}
	tokens, why := reply.CountsPrompt()
	if why != "" {
		return 0, nil
	}
	return tokens, nil
}

// Count is the tokens of a text that begins and ends at a line's border.
func (c *Counter) Count(ctx context.Context, text string) (int, error) {
	switch c.by {
	case byTokenizer:
		return c.server.Tokens.Count(ctx, text)
	case byUsage:
		used, err := c.usage(ctx, text)
		if err != nil || used == 0 {
			return len(text) / 4, err
		}
		return max(1, used-c.head), nil
	}
	return max(1, len(text)/4), nil
}

// Head is the tokens that the template puts around a user's message.
func (c *Counter) Head() int { return c.head }

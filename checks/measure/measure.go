// Package measure times requests to a server and says of every number whose it is: the server's or this client's clock.
// The rule: no figure may look better because the prompt got longer, the cache was warm or the answer was short,
// without saying so. So a rate of reading counts only tokens that were computed, a rate of writing leaves the first
// token out and is never made from few tokens, and a number that would rest on a contradiction is left out with the
// reason.
package measure

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slipway/checks/client"
)

// Options of a measurement.
type Options struct {
	Text      string
	Fresh     bool
	Nonce     func() string // a random word for Fresh; each call gives another
	MaxTokens int
	Repeat    int
	Thinking  bool
	Stage     func(Stage) // called before each request; may be nil
}

// Stage is a request about to be sent: run N of the measurement, from 1, or 0 for the probe.
type Stage struct {
	Run, Of  int
	Forecast *Forecast // before the first run, where the prompt is long
}

// Result is everything that was measured.
type Result struct {
	Server   client.Identity `json:"server"`
	URL      string          `json:"url"`
	Fresh    string          `json:"fresh"` // how the prefix was broken, or empty
	Left     []string        `json:"left_out"`
	Forecast *Forecast       `json:"forecast"`
	Runs     []Run           `json:"runs"`
	Summary  []Spread        `json:"summary"`
}

// Run is one request. A nil number has its reason in Absent under its JSON name.
type Run struct {
	Prompt       *int              `json:"prompt_tokens"`       // server
	Cached       *int              `json:"cached_tokens"`       // server
	Computed     *int              `json:"computed_tokens"`     // server
	Completion   *int              `json:"completion_tokens"`   // server
	Reasoning    *int              `json:"reasoning_tokens"`    // server
	Pieces       int               `json:"pieces"`              // client: events that carried text
	FirstToken   *float64          `json:"first_token_seconds"` // client
	Total        float64           `json:"total_seconds"`       // client
	Queue        *float64          `json:"queue_seconds"`       // server
	Prefill      *float64          `json:"prefill_seconds"`     // server
	PrefillRate  *float64          `json:"prefill_tokens_per_second"`
	DecodeRate   *float64          `json:"decode_tokens_per_second"`
	Whose        map[string]string `json:"whose"`  // "server" or "client" for each number that is there
	Absent       map[string]string `json:"absent"` // why a number is not there
	Doubts       []client.Doubt    `json:"doubts"`
	FinishReason string            `json:"finish_reason"`
	Notice       string            `json:"notice"`
	Answer       string            `json:"answer"`
	Thinking     string            `json:"thinking"`
}

const (
	server = "server"
	ours   = "client"
	// leastDecoded: below it a rate says more about chance than about the server.
	leastDecoded = 16
	// leastPieces: a stream that comes in few pieces was held back, and its times are those of the holding.
	leastPieces = 8
	// leastComputed: below it the fixed price of a request outweighs the reading.
	leastComputed = 64
	// headTokens is the most that a template puts in front of the first words of a prompt, where a fresh one may be
	// cached.
	headTokens = 64
)

// Do measures. A fault ends it; the runs before it are in the result, with the doubts about them.
func Do(ctx context.Context, s *client.Server, o Options) (Result, error) {
	result := Result{Server: s.Details, URL: s.Base, Runs: []Run{}, Summary: []Spread{}, Left: []string{}}
	if o.Fresh {
		result.Fresh = "the prompt begins with a line of a random word, another one for each request, so nothing " +
			"after it can come from a cache"
	}
	if len(o.Text) >= longPromptBytes {
		forecast, err := probe(ctx, s, o)
		if err != nil {
			return result, err
		}
		result.Forecast = forecast
	}
	for n := range max(1, o.Repeat) {
		stage := Stage{Run: n + 1, Of: max(1, o.Repeat)}
		if n == 0 {
			stage.Forecast = result.Forecast
		}
		if o.Stage != nil {
			o.Stage(stage)
		}
		reply, err := s.Chat(ctx, o.request(o.Text, o.MaxTokens))
		result.Left = append([]string{}, s.Lacks()...)
		if err != nil {
			return result, err
		}
		result.Runs = append(result.Runs, read(reply, o.Fresh))
	}
	result.Summary = summarise(result.Runs)
	return result, nil
}

func (o Options) request(text string, maxTokens int) client.Request {
	if o.Fresh {
		text = freshLine(o.Nonce()) + text
	}
	return client.Request{Messages: []client.Message{client.Say("user", text)}, MaxTokens: maxTokens,
		Thinking: o.Thinking}
}

// freshLine comes in front of a text: its word is among the first tokens.
func freshLine(nonce string) string { return nonce + " is the number of this run.\n\n" }

// read takes the numbers of one reply.
func read(reply *client.Reply, fresh bool) Run {
	r := Run{Whose: map[string]string{}, Absent: map[string]string{}, Doubts: reply.Doubts(),
		FinishReason: reply.Finish, Notice: reply.Notice,
		Answer: reply.Text, Thinking: reply.Reasoning, Total: reply.Ended.Sub(reply.Started).Seconds()}
	r.Whose["total_seconds"] = ours
	for _, p := range reply.Pieces {
		if !p.IsCall {
			r.Pieces++
		}
	}
	r.Whose["pieces"] = ours
	r.prompt(reply, fresh)
	r.first(reply)
	r.prefill(reply, fresh)
	r.decode(reply)
	if r.Doubts == nil {
		r.Doubts = []client.Doubt{}
	}
	return r
}

func (r *Run) give(name string, into **float64, value float64, whose string) {
	*into, r.Whose[name] = &value, whose
}

func (r *Run) count(name string, into **int, value int) { *into, r.Whose[name] = &value, server }

// prompt takes the counts. prompt = cached + computed holds on every line that is shown, or none of the three is.
func (r *Run) prompt(reply *client.Reply, fresh bool) {
	tokens, why := reply.CountsPrompt()
	if why != "" {
		for _, name := range []string{"prompt_tokens", "cached_tokens", "computed_tokens"} {
			r.Absent[name] = why
		}
	} else {
		r.count("prompt_tokens", &r.Prompt, tokens)
		u := reply.Usage
		switch {
		case u.Cached != nil:
			r.count("cached_tokens", &r.Cached, *u.Cached)
			r.count("computed_tokens", &r.Computed, tokens-*u.Cached)
		case u.Computed != nil:
			r.count("computed_tokens", &r.Computed, *u.Computed)
			r.count("cached_tokens", &r.Cached, tokens-*u.Computed)
		default:
			r.Absent["cached_tokens"] = "the server does not say what came from its cache"
			r.Absent["computed_tokens"] = r.Absent["cached_tokens"]
		}
		if fresh && r.Cached != nil && *r.Cached > headTokens {
			r.Doubts = append(r.Doubts, client.Doubt{About: client.AboutPrompt,
				Why: fmt.Sprintf("the server says that %d tokens were cached, though the prompt begins with a new "+
					"random word", *r.Cached)})
		}
	}
	if tokens, why = reply.CountsAnswer(); why != "" {
		r.Absent["completion_tokens"] = why
	} else {
		r.count("completion_tokens", &r.Completion, tokens)
	}
	if reply.Usage != nil && reply.Usage.Reasoning != nil {
		r.count("reasoning_tokens", &r.Reasoning, *reply.Usage.Reasoning)
	}
}

// first is the client's time to the first token.
func (r *Run) first(reply *client.Reply) {
	switch at := reply.FirstPiece(); {
	case !reply.Streamed:
		r.Absent["first_token_seconds"] = "the server sent its answer in one piece, so the time of the first token " +
			"is unknown"
	case at.IsZero():
		r.Absent["first_token_seconds"] = "the answer is empty"
	default:
		r.give("first_token_seconds", &r.FirstToken, at.Sub(reply.Started).Seconds(), ours)
	}
}

// prefill takes the server's time and makes the rate of the tokens that were computed.
func (r *Run) prefill(reply *client.Reply, fresh bool) {
	if u := reply.Usage; u != nil && u.Queue != nil {
		r.give("queue_seconds", &r.Queue, u.Queue.Seconds(), server)
	}
	const name, rate = "prefill_seconds", "prefill_tokens_per_second"
	given := reply.Usage != nil && reply.Usage.Prefill != nil
	if given {
		r.give(name, &r.Prefill, reply.Usage.Prefill.Seconds(), server)
	} else {
		r.Absent[name] = "the server does not give its own time"
	}
	switch {
	case r.Computed != nil && *r.Computed < leastComputed:
		r.Absent[rate] = fmt.Sprintf("%d tokens were computed, and a rate needs %d", *r.Computed, leastComputed)
	case r.Computed != nil && given && *r.Prefill > 0:
		r.give(rate, &r.PrefillRate, float64(*r.Computed) / *r.Prefill, server)
	case r.Computed != nil && r.FirstToken != nil && *r.FirstToken > 0:
		r.give(rate, &r.PrefillRate, float64(*r.Computed) / *r.FirstToken, ours)
	case r.Prompt != nil && *r.Prompt >= leastComputed && fresh && r.FirstToken != nil && *r.FirstToken > 0:
		r.give(rate, &r.PrefillRate, float64(*r.Prompt) / *r.FirstToken, ours)
	case r.Prompt != nil && r.Computed == nil:
		r.Absent[rate] = "the server does not say how much of the prompt was computed; --fresh makes all of it new"
	default:
		r.Absent[rate] = "the number of computed tokens or the time is not known"
	}
}

// decode makes the rate over the stream without the first token.
func (r *Run) decode(reply *client.Reply) {
	const name = "decode_tokens_per_second"
	tokens, why := reply.CountsAnswer()
	hidden := 0
	if reply.Usage != nil && reply.Usage.Reasoning != nil && reply.Reasoning == "" {
		hidden = *reply.Usage.Reasoning // thought, not sent: written before the first piece that the client saw
	}
	tokens -= hidden
	pieces := reply.Pieces
	switch {
	case why != "":
		r.Absent[name] = why
	case !reply.Streamed:
		r.Absent[name] = "the server sent its answer in one piece"
	case tokens-1 < leastDecoded:
		r.Absent[name] = fmt.Sprintf("the answer has %d tokens, and a rate needs %d after the first", tokens,
			leastDecoded)
	case len(pieces) < leastPieces:
		r.Absent[name] = fmt.Sprintf("the answer came in %d pieces, so their times are not those of the tokens",
			len(pieces))
	default:
		// Where a piece holds several tokens, the first may too: it is left out with its share.
		first := (tokens + len(pieces) - 1) / len(pieces)
		span := pieces[len(pieces)-1].At.Sub(pieces[0].At)
		if span <= 0 || tokens-first < leastDecoded {
			r.Absent[name] = "the whole answer came at once"
			return
		}
		r.give(name, &r.DecodeRate, float64(tokens-first)/span.Seconds(), ours)
	}
}

// Seconds is a duration for people: 0.84 s, 12 s, 4 min 10 s.
func Seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	}
	return strings.TrimSuffix(fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60), " 00 s")
}

package openai

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"slipway/engine/api/turn"
	"slipway/engine/api/web"
)

// streaming says how the reply is sent.
type streaming struct {
	stream       bool
	includeUsage bool // as a last event
	unbounded    bool // the client asked for as many tokens as there is room for
	replies      int
}

// form is one of the two forms that a generation is asked for and answered in.
type form struct {
	read   func(*web.Object) (*turn.Request, streaming, *turn.Error)
	stream func(*web.Record, []*turn.Reply, *turn.Request, streaming) *turn.Error
	plain  func(*web.Record, []*turn.Reply, *turn.Request) *turn.Error
}

// generate reads a request, starts its reply and sends it.
func (w *Wire) generate(rec *web.Record, r *http.Request, f form) *turn.Error {
	o, release, failure := w.bodies.Read(rec, r)
	defer release()
	if failure != nil {
		return failure
	}
	q, how, failure := f.read(o)
	if failure != nil {
		return failure
	}
	o = nil // release gives its memory back
	replies, failure := w.turns.StartSeveral(r.Context(), rec.ID, q, how.replies, release)
	if failure != nil {
		return failure
	}
	if how.stream {
		return f.stream(rec, replies, q, how)
	}
	return f.plain(rec, replies, q)
}

// follow hands the events of each reply to each, one reply after the other: they are computed at the same time. The
// first error ends all; a failure of one is that of all.
func (w *Wire) follow(rec *web.Record, replies []*turn.Reply, each func(i int, e turn.Event) error, idle func() error) (
	ends []*turn.End, failure *turn.Error, err error) {
	for i, reply := range replies {
		end, err := web.Follow(rec, reply, w.keepAlive, func(e turn.Event) error { return each(i, e) }, idle)
		if err == nil && end.Failure == nil {
			ends = append(ends, end)
			continue
		}
		cancelAll(replies[i+1:], context.Canceled)
		if err != nil {
			return nil, nil, err
		}
		return nil, end.Failure, nil
	}
	return ends, nil, nil
}

func cancelAll(replies []*turn.Reply, cause error) {
	for _, reply := range replies {
		reply.Cancel(cause)
	}
}

// noticeOf joins what replies say of themselves, each thing once.
func noticeOf(ends []*turn.End) string {
	var notices []string
	for _, end := range ends {
		if notice := end.Notice(); notice != "" && !slices.Contains(notices, notice) {
			notices = append(notices, notice)
		}
	}
	return strings.Join(notices, " ")
}

// mostReplies bounds n.
const mostReplies = 4

// readGeneration takes the members that chat and text completions have alike.
func (w *Wire) readGeneration(o *web.Object, q *turn.Request) (how streaming) {
	q.Sampling, q.TopLogprobs = w.turns.Defaults(), -1
	for name, to := range map[string]*float64{
		"temperature": &q.Sampling.Temperature, "top_p": &q.Sampling.TopP, "min_p": &q.Sampling.MinP,
		"presence_penalty": &q.Sampling.PresencePenalty, "frequency_penalty": &q.Sampling.FrequencyPenalty,
		"repetition_penalty": &q.Sampling.RepetitionPenalty,
	} {
		if v, given := o.Number(name); given {
			*to = v
		}
	}
	if v, given := o.Integer("top_k", 0, math.MaxInt32); given {
		q.Sampling.TopK = int(v)
	}
	if v, given := o.Integer("seed", math.MinInt64, math.MaxInt64); given {
		q.Seed = uint64(v)
	} else {
		q.Seed = turn.NewSeed()
	}
	q.Sampling.LogitBias = readLogitBias(o)
	q.Stop = o.Stops("stop")
	how.unbounded = readMaxTokens(o, q)
	how.replies = 1
	if n, given := o.Integer("n", 1, mostReplies); given {
		how.replies = int(n)
	}
	how.stream, _ = o.Boolean("stream")
	if sub := o.Sub("stream_options"); sub != nil {
		if !how.stream {
			o.Fail("stream_options", "is only allowed with stream true")
		}
		how.includeUsage, _ = sub.Boolean("include_usage")
		sub.Ignore("include_obfuscation")
		o.Keep(sub.Done())
	}
	w.readOwn(o, q)
	o.Ignore("user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prediction")
	o.Only("store", "replies are not kept for later", "false")
	o.Only("service_tier", "there is one tier here", `"auto"`, `"default"`)
	if o.Err() == nil {
		if err := q.Sampling.Check(w.turns.VocabTokens()); err != nil {
			o.Keep(turn.AsError(err))
		}
	}
	return how
}

// readOwn takes the member slipway, what a request may ask for that OpenAI has no name for: {"draft_tokens": N}.
func (w *Wire) readOwn(o *web.Object, q *turn.Request) {
	own := o.Sub("slipway")
	if own == nil {
		return
	}
	n, given := own.Integer("draft_tokens", 0, math.MaxInt32)
	switch most := w.turns.MostDraftTokens(); {
	case !given:
	case n == 0:
		q.DraftTokens = turn.NoDraft
	case most == 0:
		own.Fail("draft_tokens", "is %d, and this server has no draft; start it with --draft", n)
	case int(n) > most:
		own.Fail("draft_tokens", "is %d; the draft proposes at most %d tokens at a time", n, most)
	default:
		q.DraftTokens = int(n)
	}
	o.Keep(own.Done())
}

// readMaxTokens takes both names of the bound; max_tokens is the older one of max_completion_tokens. -1 is none.
func readMaxTokens(o *web.Object, q *turn.Request) (unbounded bool) {
	older, hasOlder := o.Integer("max_tokens", -1, math.MaxInt32)
	newer, hasNewer := o.Integer("max_completion_tokens", -1, math.MaxInt32)
	switch {
	case hasOlder && hasNewer && older != newer:
		o.Fail("max_tokens", "is %d while max_completion_tokens is %d; give one of them", older, newer)
	case hasOlder && older == 0:
		o.Fail("max_tokens", "is 0; it must be at least 1, or -1 for no limit")
	case hasNewer && newer == 0:
		o.Fail("max_completion_tokens", "is 0; it must be at least 1, or -1 for no limit")
	}
	if !hasOlder {
		older = newer
	}
	q.MaxTokens = int(max(older, 0))
	return older < 0
}

func readLogitBias(o *web.Object) map[int32]float64 {
	sub := o.Sub("logit_bias")
	if sub == nil {
		return nil
	}
	bias := map[int32]float64{}
	for _, name := range sub.Names() {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			o.Fail("logit_bias", "has the member %.40q; members are token ids", name)
			return nil
		}
		if v, given := sub.Number(name); given {
			bias[int32(id)] = v
		}
	}
	o.Keep(sub.Done())
	return bias
}

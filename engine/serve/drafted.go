package serve

import (
	"context"
	"slices"
	"time"

	"slipway/engine/draft"
	"slipway/engine/draft/accept"
	"slipway/engine/pass"
	"slipway/engine/sample"
)

// draftDecoder gives replies the tokens that a draft proposes and the network accepts, and one more. All replies share
// the passes of draft and network; one without a draft gets its single token from the same pass.
type draftDecoder struct {
	e        *Engine
	segments []pass.Segment
	asks     []draft.Ask
	steps    []step
	kept     []int // tokens of each segment that its sequence keeps
	guard    guard
}

func (d *draftDecoder) decode(ctx context.Context, jobs []*job) ([]step, error) {
	begun := d.e.opt.Now()
	if err := d.propose(ctx, jobs); err != nil {
		return nil, err
	}
	proposed := d.e.opt.Now()
	d.segments, d.steps, d.kept = d.segments[:0], d.steps[:0], d.kept[:0]
	for _, j := range jobs {
		j.rows = append(j.rows[:0], j.out[len(j.out)-1])
		for _, token := range j.drafted {
			j.rows = append(j.rows, token.ID)
		}
		s := pass.Segment{Seq: j.seq, Tokens: j.rows, Logits: pass.LogitsAll, Top: j.topWanted()}
		if j.draft != nil {
			j.draft.Want(&s)
		}
		d.segments = append(d.segments, s)
	}
	rows, err := d.e.forward(ctx, d.segments)
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		s, kept := d.verify(j, i, rows[i])
		d.steps, d.kept = append(d.steps, s), append(d.kept, kept)
	}
	verified := d.e.opt.Now()
	for i, j := range jobs { // rows of logits are used up: a draft may run passes
		if n := len(j.drafted); n > 0 {
			j.usage.Drafts.count(n, min(n, d.kept[i]-1), proposed.Sub(begun), verified.Sub(proposed))
		}
		if err := j.rewind(len(j.rows) - d.kept[i]); err != nil {
			return nil, err
		}
		if j.draft == nil || d.steps[i].err != nil {
			continue
		}
		if err := j.draft.Kept(ctx, j.rows[:d.kept[i]]); err != nil {
			return nil, err
		}
	}
	if len(jobs) == 1 && d.steps[0].err == nil {
		d.watch(jobs[0], len(d.steps[0].tokens), d.e.opt.Now().Sub(begun))
	}
	return d.steps, nil
}

// rests reports whether the guard wants to see a step without a proposal.
func (d *draftDecoder) rests(j *job) bool { return j.DraftTokens == 0 && j.guarded.rests(&d.guard) }

// watch shows the guard a step of one request alone.
func (d *draftDecoder) watch(j *job, tokens int, took time.Duration) {
	if len(j.drafted) == 0 {
		j.guarded.single(&d.guard, took)
		return
	}
	if j.DraftTokens != 0 { // the request asks for drafts, whatever they cost
		return
	}
	if off := j.guarded.judge(&d.guard, len(j.drafted), tokens, took); off != "" {
		j.endDraft()
		j.usage.Drafts.Off = off
		d.e.opt.Log.Info("drafting is off for a request", "request", j.ID, "why", off)
	}
}

// propose fills in what each job drafts: no more than its reply may still hold beside the token that verification
// gives.
func (d *draftDecoder) propose(ctx context.Context, jobs []*job) error {
	d.asks = d.asks[:0]
	for _, j := range jobs {
		j.drafted = j.drafted[:0]
		most := min(j.draftTokens, j.limit-len(j.out)-1)
		if j.draft == nil || most < 1 || len(jobs) == 1 && d.rests(j) {
			continue
		}
		reply := j.replyForMask()
		d.asks = append(d.asks, draft.Ask{Context: j.draft, Last: j.out[len(j.out)-1], Most: most, Drafted: &j.drafted,
			Choose: func(row draft.Row) (*accept.Drafted, bool) {
				token := d.e.draw(j, reply, row)
				if token == nil {
					return nil, false
				}
				reply = j.follow(reply, token.ID)
				j.count(token.ID)
				return token, !d.e.ends[token.ID]
			}})
	}
	if len(d.asks) == 0 {
		return nil
	}
	err := d.e.opt.Draft.Propose(ctx, d.asks)
	for _, j := range jobs { // what is not accepted yet counts for no penalty
		for _, token := range j.drafted {
			j.uncount(token.ID)
		}
	}
	return err
}

// replyForMask is the reply for a mask to look at, which follow then extends by tokens that are not in it yet. Without
// a mask nothing looks at it.
func (j *job) replyForMask() []int32 {
	if j.Mask == nil {
		return nil
	}
	return slices.Clone(j.out)
}

func (j *job) follow(reply []int32, id int32) []int32 {
	if j.Mask == nil {
		return nil
	}
	return append(reply, id)
}

// draw draws a token from a draft's logits as the target's is drawn; nil where nothing can be drawn, which only ends
// the proposal.
func (e *Engine) draw(j *job, reply []int32, row draft.Row) *accept.Drafted {
	if j.topWanted() == 1 { // greedy, and nothing else decides: a pass over the row is a tenth of a small model's
		return likeliest(row, e.opt.VocabTokens)
	}
	q, err := e.draftDistribution(j, reply, row)
	if err != nil {
		return nil
	}
	q = sample.Distribution{IDs: slices.Clone(q.IDs), Probs: slices.Clone(q.Probs)}
	token := &accept.Drafted{ID: q.IDs[0], Q: q}
	if len(q.IDs) > 1 {
		token.ID = q.Pick(j.generator.Float64())
	}
	return token
}

// likeliest proposes the largest logit, of equal ones the smallest id, with certainty; nil where there is none.
func likeliest(row draft.Row, vocab int) *accept.Drafted {
	best, id := float32(0), int32(-1)
	if row.IDs == nil {
		best, id = row.Logits[0], 0
		for i, l := range row.Logits[:vocab] {
			if l > best {
				best, id = l, int32(i)
			}
		}
	}
	for i, other := range row.IDs {
		if l := row.Logits[i]; int(other) < vocab && (id < 0 || l > best || l == best && other < id) {
			best, id = l, other
		}
	}
	if id < 0 {
		return nil
	}
	return &accept.Drafted{ID: id, Q: sample.Distribution{IDs: []int32{id}, Probs: []float64{1}}}
}

// draftDistribution is distribution for a draft's row.
func (e *Engine) draftDistribution(j *job, reply []int32, row draft.Row) (sample.Distribution, error) {
	if row.IDs == nil {
		return e.distribution(j, reply, row.Logits, sample.Top{})
	}
	var mask sample.Mask
	if j.Mask != nil {
		mask = j.Mask(reply)
	}
	return e.sampler.DistributionAmong(row.IDs, row.Logits, j.Sampling, j.history, mask)
}

// verify gives the tokens that a job gets of its rows of logits, and how many tokens of its segment its sequence keeps:
// all but the last of the reply.
func (d *draftDecoder) verify(j *job, segment int, rows [][]float32) (s step, kept int) {
	accepted, next, err := d.accept(j, segment, rows)
	if err != nil && accepted == 0 {
		return step{err: err}, 1
	}
	for i := range accepted {
		s.tokens = append(s.tokens, d.e.token(j, j.drafted[i].ID, rows[i]))
	}
	if err != nil { // the next step meets it again, after what is accepted
		return s, accepted
	}
	s.tokens = append(s.tokens, d.e.token(j, next, rows[accepted]))
	j.count(next)
	return s, accepted + 1
}

// accept runs the acceptance rule; accepted tokens are counted for penalties.
func (d *draftDecoder) accept(j *job, segment int, rows [][]float32) (accepted int, next int32, err error) {
	defer recovered(&err)
	reply := j.replyForMask()
	return accept.Verify(j.drafted, func(i int) (sample.Distribution, error) {
		if i > 0 {
			id := j.drafted[i-1].ID
			j.count(id)
			reply = j.follow(reply, id)
		}
		return d.e.distribution(j, reply, rows[i], d.e.topOf(j, segment, i))
	}, j.generator.Float64)
}

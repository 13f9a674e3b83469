package serve

import (
	"context"

	"slipway/engine/pass"
	"slipway/engine/sample"
)

// decoder advances replies: a token at a time, or several where a draft proposes and the network verifies.
type decoder interface {
	// decode advances each job by one step and gives step i for job i. Before it, a job's sequence has processed the
	// prompt and the reply up to its last token. After it, the sequence has processed the accepted tokens up to the
	// last one too, and nothing else: what was rejected is rewound. An error is that of a pass and ends all jobs. The
	// steps belong to the decoder and are valid until the next call.
	decode(ctx context.Context, jobs []*job) ([]step, error)
}

// step is what one job got.
type step struct {
	tokens []Token // accepted, in order, none of them in the reply yet; may be empty
	err    error   // ends this job alone
}

// singleDecoder gives every reply its next token, all in one pass.
type singleDecoder struct {
	e        *Engine
	segments []pass.Segment
	tokens   []Token
	steps    []step
}

func (d *singleDecoder) decode(ctx context.Context, jobs []*job) ([]step, error) {
	d.segments, d.steps = d.segments[:0], d.steps[:0]
	for _, j := range jobs {
		last := j.out[len(j.out)-1:]
		d.segments = append(d.segments, pass.Segment{Seq: j.seq, Tokens: last, Logits: pass.LogitsLast,
			Top: j.topWanted()})
	}
	rows, err := d.e.forward(ctx, d.segments)
	if err != nil {
		return nil, err
	}
	if len(d.tokens) < len(jobs) {
		d.tokens = make([]Token, len(jobs))
	}
	for i, j := range jobs {
		s := step{tokens: d.tokens[i : i+1]}
		if s.tokens[0], s.err = d.e.choose(j, j.out, rows[i][0], i, 0); s.err != nil {
			s.tokens = nil
		}
		d.steps = append(d.steps, s)
	}
	return d.steps, nil
}

// choose picks the token after reply from a row of logits, [V], which is one of a segment's in the latest pass, and
// counts it for penalties.
func (e *Engine) choose(j *job, reply []int32, logits []float32, segment, row int) (token Token, err error) {
	defer recovered(&err)
	d, err := e.distribution(j, reply, logits, e.topOf(j, segment, row))
	if err != nil {
		return Token{}, err
	}
	id := d.IDs[0]
	if len(d.IDs) > 1 {
		id = d.Pick(j.generator.Float64())
	}
	j.count(id)
	return e.token(j, id, logits), nil
}

// topOf is what the device chose of a row in the latest pass; empty where the whole row decides.
func (e *Engine) topOf(j *job, segment, row int) sample.Top {
	if j.topWanted() == 0 {
		return sample.Top{}
	}
	return e.net.Best(segment, row)
}

// distribution is what the token after reply is drawn from, by a row of logits, [V], or by the largest of it. It is
// valid until the next call. Target and draft go through it alike.
func (e *Engine) distribution(j *job, reply []int32, logits []float32, top sample.Top) (sample.Distribution, error) {
	if len(top.IDs) > 0 {
		if d, chosen := e.sampler.DistributionOfTop(top, j.Sampling); chosen {
			return d, nil
		}
	}
	var mask sample.Mask
	if j.Mask != nil {
		mask = j.Mask(reply)
	}
	return e.sampler.Distribution(logits, j.Sampling, j.history, mask)
}

// token adds the logprobs that the request asked for.
func (e *Engine) token(j *job, id int32, logits []float32) Token {
	token := Token{ID: id}
	if j.TopLogprobs >= 0 {
		token.Logprob, token.Top = e.sampler.Logprobs(logits, id, j.TopLogprobs)
	}
	return token
}

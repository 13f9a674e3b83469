package api

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"

	"slipway/engine/sample"
)

// generation is what chat and text completions say alike about the reply.
type generation struct {
	params       sample.Params
	seed         uint64
	maxTokens    int // 0: to the window's end
	stop         []string
	stream       bool
	includeUsage bool
	topLogprobs  int // negative: none
}

// mostStops bounds the texts looked for after every token; OpenAI allows 4.
const mostStops = 16

// readGeneration takes the common members. defaults are the model's.
func (s *Server) readGeneration(o *object) generation {
	g := generation{params: s.opt.Defaults, topLogprobs: -1}
	for name, to := range map[string]*float64{
		"temperature": &g.params.Temperature, "top_p": &g.params.TopP, "min_p": &g.params.MinP,
		"presence_penalty": &g.params.PresencePenalty, "frequency_penalty": &g.params.FrequencyPenalty,
		"repetition_penalty": &g.params.RepetitionPenalty,
	} {
		if v, given := o.float(name); given {
			*to = v
		}
	}
	if v, given := o.integer("top_k", 0, math.MaxInt32); given {
		g.params.TopK = int(v)
	}
	if v, given := o.integer("seed", math.MinInt64, math.MaxInt64); given {
		g.seed = uint64(v)
	} else {
		g.seed = s.randomSeed()
	}
	g.params.LogitBias = readLogitBias(o)
	g.stop = readStop(o)
	g.readMaxTokens(o)
	if n, given := o.integer("n", math.MinInt64, math.MaxInt64); given && n != 1 {
		o.fail("n", "is %d; this server gives one reply a request (n 1)", n)
	}
	g.stream, _ = o.boolean("stream")
	if raw := o.take("stream_options"); raw != nil {
		if !g.stream {
			o.fail("stream_options", "is only allowed with stream true")
		} else if sub, err := readObject("stream_options", raw); err != nil {
			o.keep(err)
		} else {
			g.includeUsage, _ = sub.boolean("include_usage")
			sub.ignore("include_obfuscation")
			o.keep(sub.done())
		}
	}
	o.ignore("user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prediction")
	o.only("store", "replies are not kept for later", "false")
	o.only("service_tier", "there is one tier here", `"auto"`, `"default"`)
	if o.err == nil {
		if err := g.params.Check(s.opt.VocabTokens); err != nil {
			o.keep(asError(err))
		}
	}
	return g
}

func (o *object) keep(err *Error) {
	if o.err == nil {
		o.err = err
	}
}

// readMaxTokens takes both names of the bound; max_tokens is the older one of max_completion_tokens.
func (g *generation) readMaxTokens(o *object) {
	older, hasOlder := o.integer("max_tokens", 1, math.MaxInt32)
	newer, hasNewer := o.integer("max_completion_tokens", 1, math.MaxInt32)
	if hasOlder && hasNewer && older != newer {
		o.fail("max_tokens", "is %d while max_completion_tokens is %d; give one of them", older, newer)
	}
	g.maxTokens = int(max(older, newer))
}

func readStop(o *object) []string {
	raw := o.take("stop")
	if raw == nil {
		return nil
	}
	var stops []string
	if raw[0] == '"' {
		stops = make([]string, 1)
		if json.Unmarshal(raw, &stops[0]) != nil {
			o.fail("stop", "is not a string")
		}
	} else if err := strictStrings(raw, &stops); err != nil {
		o.fail("stop", "must be a string or an array of strings")
	}
	if len(stops) > mostStops {
		o.fail("stop", "has %d texts; at most %d are looked for", len(stops), mostStops)
	}
	for _, stop := range stops {
		if stop == "" {
			o.fail("stop", "holds an empty text, which would end every reply at once")
		}
	}
	return stops
}

// strictStrings reads an array of strings; json.Unmarshal alone would take null for "".
func strictStrings(raw json.RawMessage, to *[]string) error {
	var elements []*string
	if err := json.Unmarshal(raw, &elements); err != nil {
		return err
	}
	for _, e := range elements {
		if e == nil {
			return strconv.ErrSyntax
		}
		*to = append(*to, *e)
	}
	return nil
}

func readLogitBias(o *object) map[int32]float64 {
	raw := o.take("logit_bias")
	if raw == nil {
		return nil
	}
	sub, err := readObject("logit_bias", raw)
	if err != nil {
		o.keep(err)
		return nil
	}
	bias := map[int32]float64{}
	for _, name := range sub.order {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			o.fail("logit_bias", "has the member %.40q; members are token ids", name)
			return nil
		}
		if v, given := sub.float(name); given {
			bias[int32(id)] = v
		}
	}
	o.keep(sub.done())
	return bias
}

func (s *Server) randomSeed() uint64 {
	var b [8]byte
	s.random(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

package cache

import (
	"slices"

	"slipway/checks/client"
	"slipway/checks/needle"
	"slipway/checks/record"
)

// document is a text with four codes in it.
type document struct {
	nonce  string
	names  []string
	codes  []string
	depths []float64
	seed   [2]uint64 // of the filler
}

// newDocument has codes near the beginning, in the middle and near the end.
func (st *stage) newDocument() document {
	d := document{nonce: st.o.Nonce(), depths: []float64{0.1, 0.4, 0.7, 0.95}, seed: [2]uint64{
		st.random.Uint64(), st.random.Uint64()}}
	for range d.depths {
		d.names, d.codes = append(d.names, needle.Name(st.random, d.names)), append(d.codes, needle.Code(st.random))
	}
	return d
}

// changed is the same text with another value at one place.
func (d document) changed(st *stage, i int) document {
	d.codes = slices.Clone(d.codes)
	for old := d.codes[i]; d.codes[i] == old; {
		d.codes[i] = needle.Code(st.random)
	}
	return d
}

// fresh is the same text after another random word: nothing of it can be cached.
func (d document) fresh(st *stage) document {
	d.nonce = st.o.Nonce()
	return d
}

func (st *stage) text(d document) string {
	var lines []string
	for i := range d.names {
		lines = append(lines, needle.Fact(d.names[i], d.codes[i]))
	}
	body, _ := st.ruler.Build(newRandom(d.seed), st.o.Tokens-headTokens, lines, d.depths)
	return "Document:\n" + d.nonce + "\n" + body
}

// first is the beginning of a conversation about the document.
func (st *stage) first(d document, question string) []client.Message {
	return []client.Message{client.Say("system", system), client.Say("user", st.text(d)+"\n\n"+question)}
}

// value judges an answer: want must be in it, and old, which may be empty, must not. control asks the same without the
// cache, and reports whether that was right; inText says that the old value is in the text too, so that the model may
// have chosen it by itself.
func (st *stage) value(reply *client.Reply, name, want, old string, inText bool,
	control func() (*client.Reply, error)) error {
	st.of++
	switch {
	case needle.Found(reply.Answer(), name, want):
		st.hits++
		return nil
	case old != "" && !inText && needle.Found(reply.Answer(), name, old):
		st.bad(record.Fail, "answered with the old value %s, where the text now has %s: a stale answer", old, want)
		return nil
	}
	last := st.last
	without, err := control()
	st.last = last
	if err != nil {
		return err
	}
	if needle.Found(without.Answer(), name, want) {
		st.bad(record.Fail, "answered %q where the text has %s; without the cache the same question is "+
			"answered rightly", short(reply.Answer()), want)
	} else {
		st.bad(record.Unknown, "the model does not find %s without the cache either, so nothing can be said", want)
	}
	return nil
}

// asked puts a question to a document and judges the answer.
func (st *stage) asked(d document, i int, old string) (*client.Reply, error) {
	reply, err := st.ask(st.first(d, needle.Ask(d.names[i])), nil)
	if err != nil {
		return nil, err
	}
	return reply, st.value(reply, d.names[i], d.codes[i], old, false, func() (*client.Reply, error) {
		return st.ask(st.first(d.fresh(st), needle.Ask(d.names[i])), nil)
	})
}

func short(text string) string {
	text = client.Printable(text)
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return text
}

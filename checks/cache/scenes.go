package cache

import (
	"math/rand/v2"
	"sync"

	"slipway/checks/client"
	"slipway/checks/needle"
)

func newRandom(seed [2]uint64) *rand.Rand { return rand.New(rand.NewPCG(seed[0], seed[1])) }

// cold: a text that is new to the server.
func cold(st *stage) error {
	reply, err := st.asked(st.newDocument(), 0, "")
	if err != nil {
		return err
	}
	st.atMost(reply, headTokens, "the text is new")
	st.notes = cachedWords(reply)
	return nil
}

// again: the same request twice must be answered alike.
func again(st *stage) error {
	d := st.newDocument()
	before, err := st.asked(d, 2, "")
	if err != nil {
		return err
	}
	after, err := st.asked(d, 2, "")
	if err != nil {
		return err
	}
	st.notes = cachedWords(after)
	if before.Text != after.Text {
		st.notes += "; the words of the two answers differ"
	}
	return nil
}

// continuation: a second question about the same text, after the first answer.
func continuation(st *stage) error {
	d := st.newDocument()
	before, err := st.asked(d, 0, "")
	if err != nil {
		return err
	}
	more := func(d document) []client.Message {
		return append(st.first(d, needle.Ask(d.names[0])), client.Say("assistant", before.Answer()),
			client.Say("user", needle.Ask(d.names[3])))
	}
	reply, err := st.ask(more(d), nil)
	if err != nil {
		return err
	}
	st.notes = cachedWords(reply)
	return st.value(reply, d.names[3], d.codes[3], "", false, func() (*client.Reply, error) {
		return st.ask(more(d.fresh(st)), nil)
	})
}

// newData: a value that comes with the second question.
func newData(st *stage) error {
	d := st.newDocument()
	reply, err := st.asked(d, 0, "")
	if err != nil {
		return err
	}
	name, code := needle.Name(st.random, d.names), needle.Code(st.random)
	more := func(d document) []client.Message {
		return append(st.first(d, needle.Ask(d.names[0])), client.Say("assistant", reply.Answer()),
			client.Say("user", needle.Fact(name, code)+"\n"+needle.Ask(name)))
	}
	after, err := st.ask(more(d), nil)
	if err != nil {
		return err
	}
	st.notes = cachedWords(after)
	return st.value(after, name, code, "", false, func() (*client.Reply, error) {
		return st.ask(more(d.fresh(st)), nil)
	})
}

// correction: a later turn says that a value is another one now. The old one is in the text too.
func correction(st *stage) error {
	d := st.newDocument()
	reply, err := st.asked(d, 1, "")
	if err != nil {
		return err
	}
	now := d.changed(st, 1).codes[1]
	more := func(d document) []client.Message {
		return append(st.first(d, needle.Ask(d.names[1])), client.Say("assistant", reply.Answer()),
			client.Say("user", "Correction: the access code for the "+d.names[1]+" is now "+now+"."),
			client.Say("assistant", "Understood. The access code for the "+d.names[1]+" is "+now+"."),
			client.Say("user", needle.Ask(d.names[1])))
	}
	after, err := st.ask(more(d), nil)
	if err != nil {
		return err
	}
	st.notes = cachedWords(after)
	return st.value(after, d.names[1], now, d.codes[1], true, func() (*client.Reply, error) {
		return st.ask(more(d.fresh(st)), nil)
	})
}

func earlyChange(st *stage) error { return st.changeAt(0) }
func lateChange(st *stage) error  { return st.changeAt(3) }

// changeAt asks for a value, changes it, asks again, and goes back.
func (st *stage) changeAt(i int) error {
	d := st.newDocument()
	if _, err := st.asked(d, i, ""); err != nil {
		return err
	}
	other := d.changed(st, i)
	reply, err := st.asked(other, i, d.codes[i])
	if err != nil {
		return err
	}
	// The ruler is right within a few tokens a block; a twentieth more is allowed.
	st.atMost(reply, headTokens+int((d.depths[i]+0.05)*float64(st.o.Tokens))+16, "the text differs")
	st.notes = cachedWords(reply)
	_, err = st.asked(d, i, other.codes[i])
	return err
}

// twoAlike: two conversations that differ in one early value go on in turn.
func twoAlike(st *stage) error {
	d := st.newDocument()
	other := d.changed(st, 0)
	a, err := st.asked(d, 0, "")
	if err != nil {
		return err
	}
	b, err := st.asked(other, 0, d.codes[0])
	if err != nil {
		return err
	}
	for _, turn := range []struct {
		d      document
		before *client.Reply
		not    string
	}{{d, a, other.codes[0]}, {other, b, d.codes[0]}} {
		more := func(d document) []client.Message {
			return append(st.first(d, needle.Ask(d.names[0])), client.Say("assistant", turn.before.Answer()),
				client.Say("user", needle.Ask(d.names[0])))
		}
		reply, err := st.ask(more(turn.d), nil)
		if err != nil {
			return err
		}
		st.notes = cachedWords(reply)
		if err := st.value(reply, d.names[0], turn.d.codes[0], turn.not, false, func() (*client.Reply, error) {
			return st.ask(more(turn.d.fresh(st)), nil)
		}); err != nil {
			return err
		}
	}
	return nil
}

// twoAtOnce: the same, at the same time.
func twoAtOnce(st *stage) error {
	d := st.newDocument()
	both := []document{d, d.changed(st, 0)}
	replies, errs := make([]*client.Reply, 2), make([]error, 2)
	var group sync.WaitGroup
	for i := range both {
		group.Go(func() {
			replies[i], errs[i] = st.s.Chat(st.ctx, st.request(st.first(both[i], needle.Ask(d.names[0])), nil))
		})
	}
	group.Wait()
	for i := range both {
		if errs[i] != nil {
			return errs[i]
		}
		st.last = replies[i]
		st.doubts = append(st.doubts, replies[i].Doubts()...)
		err := st.value(replies[i], d.names[0], both[i].codes[0], both[1-i].codes[0], false,
			func() (*client.Reply, error) {
				return st.ask(st.first(both[i].fresh(st), needle.Ask(d.names[0])), nil)
			})
		if err != nil {
			return err
		}
	}
	st.notes = "both right"
	return nil
}

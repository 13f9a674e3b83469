package keep

import (
	"slices"

	"slipway/engine/memory"
	"slipway/engine/pass"
)

// Marks are the places of a prompt that later prompts will continue from, in tokens from its start.
type Marks struct {
	System int   // end of the system and tools block; 0: none
	Turns  []int // H: ends of user and tool turns, each before a reply's header, ascending
	Said   int   // end of the last reply in the history; 0: none
	Reply  int   // where the ids of the reply's turn begin, after its header; 0: not a chat
}

// resumes reports whether a prompt whose first common tokens were processed before resumes a conversation, even if no
// point of it is left: a whole turn is known, or for a text without turns everything that a point may save.
func (m Marks) resumes(common, most int) bool {
	if m.Reply == 0 {
		return common >= most
	}
	return slices.ContainsFunc(m.Turns, func(at int) bool { return at <= common })
}

// Visit is one request's use of the keeper, from Admit to End.
type Visit struct {
	Report Report // of the prompt; its Cached tokens are in the sequence already

	k            *Keeper
	seq          pass.Sequence
	prompt       []int32
	marks        Marks
	stops        []stop
	from         *memory.Point
	conversation *memory.Conversation
	now          []int32 // ids processed
	saved        int     // length of the latest point
}

type stop struct {
	at   int
	kind memory.Kind
}

// Tokens that a system block must have for a point of its own: below that it is computed faster than looked up.
const leastSystem = 32

// coldTurns is how many turn ends (H) the prefill of a prompt saves: the last, and the one before it in case the last
// message is edited.
const coldTurns = 2

// Admit restores an empty sequence to the longest known prefix of prompt. The last token is always left to compute, as
// its logits are wanted. The visit's Report explains the outcome.
func (k *Keeper) Admit(prompt []int32, marks Marks, seq pass.Sequence) *Visit {
	k.collect()
	v := &Visit{k: k, seq: seq, prompt: prompt, marks: marks}
	most := len(prompt) - 1
	m, fetched := k.find(prompt, most)
	explanation := k.index.Explain(k.opt.Key, prompt, m.Usable, most)
	v.conversation = k.index.Open(m.Point)
	if marks.resumes(explanation.Common, most) || explanation.Cause == memory.CauseCancelled {
		v.conversation.Resume()
	}
	k.count(func(c *Counters) {
		switch {
		case m.Point == nil:
			c.Misses++
		case fetched:
			c.Hits++
			c.FromDisk++
		default:
			c.Hits++
		}
	})
	if m.Point != nil {
		seq.Restore(k.states[m.Point], m.Usable)
		k.index.Pin(m.Point)
		v.from, v.saved = m.Point, m.Usable
	}
	v.now = slices.Clone(prompt[:m.Usable])
	v.plan(m.Usable)
	v.Report = k.report(prompt, explanation)
	return v
}

// plan lists where the prefill stops to save.
func (v *Visit) plan(from int) {
	add := func(at int, kind memory.Kind) {
		if at > from && at < len(v.prompt) && !slices.ContainsFunc(v.stops, func(s stop) bool { return s.at == at }) {
			v.stops = append(v.stops, stop{at, kind})
		}
	}
	if v.marks.System >= leastSystem {
		add(v.marks.System, memory.KindSystem)
	}
	for _, at := range v.marks.Turns[max(0, len(v.marks.Turns)-coldTurns):] {
		add(at, memory.KindTurn)
	}
	// The last message may be edited later. If the reply before it was decoded here, its end is a point already.
	add(v.marks.Said, memory.KindReply)
	if v.marks.Reply == 0 {
		add(len(v.prompt)-1, memory.KindTurn) // a text without turns is sent again as it is
	}
	if p := v.k.period; p > 0 {
		for at := (from/p + 1) * p; at < len(v.prompt); at += p {
			add(at, memory.KindPeriodic)
		}
	}
	slices.SortFunc(v.stops, func(a, b stop) int { return a.at - b.at })
}

// Next bounds a prefill chunk that begins where the sequence is, so that it ends at the next place to save at.
func (v *Visit) Next(chunk int) int {
	if len(v.stops) > 0 {
		return min(chunk, v.stops[0].at-len(v.now))
	}
	return chunk
}

// Processed records that the sequence has processed ids, and saves where that is a place to save at. Drafted tokens are
// reported once they are accepted and the rejected ones are rewound, so that no point holds a rejected token.
func (v *Visit) Processed(ids []int32) {
	before := len(v.now)
	v.now = append(v.now, ids...)
	if v.seq.Len() != len(v.now) {
		panic("keep: the sequence holds other tokens than those that were reported")
	}
	for len(v.stops) > 0 && v.stops[0].at <= len(v.now) {
		if v.stops[0].at == len(v.now) {
			v.save(v.stops[0].kind, false)
		}
		v.stops = v.stops[1:]
	}
	if p := v.k.period; p > 0 && len(v.now) > len(v.prompt) && len(v.now)/p > before/p {
		v.save(memory.KindPeriodic, false)
	}
}

// Rewind takes the last tokens of the sequence back, tokens in [0, TapeLen], whether they were reported or not.
func (v *Visit) Rewind(tokens int) {
	v.seq.Rewind(tokens)
	v.now = v.now[:min(len(v.now), v.seq.Len())]
}

// How a request ended.
type Ending int

const (
	EndWhole     Ending = iota // by an end token or a bound
	EndCut                     // by a stop text, which is not part of the reply
	EndCancelled               // its client left
	EndBroken                  // a pass failed: the sequence cannot be trusted
)

// End saves what was processed: the end of a reply, or what a cancelled request had reached. reply is what was
// streamed, without the end token. The caller closes the sequence afterwards.
func (v *Visit) End(how Ending, reply []int32) {
	k := v.k
	defer k.publish()
	if v.from != nil {
		defer k.index.Unpin(v.from)
	}
	if how == EndBroken || v.seq.Len() != len(v.now) {
		return
	}
	decoding := len(v.now) > len(v.prompt)
	switch {
	case len(v.now) <= v.saved:
	case how == EndWhole && decoding:
		v.save(memory.KindReply, false)
	case how == EndCut && decoding:
		v.save(memory.KindReply, true)
	case how == EndCancelled && !v.save(memory.KindCancelled, decoding):
		k.index.Lose(k.opt.Key, v.now, memory.LostCancelled)
	}
	k.index.Learn(k.opt.Key, v.now)
	for t, gone := range k.index.Tidy(k.opt.Key, v.now, k.period) {
		k.free(memory.Tier(t), gone)
	}
	k.storePeriodic(v.now)
	if v.marks.Reply > 0 && len(reply) > 0 {
		v.remember(reply)
	}
}

// remember keeps the reply's exact ids, including those that the prompt opened it with.
func (v *Visit) remember(reply []int32) {
	k := v.k
	r := memory.Reply{Prefix: memory.HashPrefix(v.prompt[:v.marks.Reply]), IDs: slices.Concat(v.prompt[v.marks.Reply:],
		reply)}
	if k.replies.Remember(r) && k.opt.Disk != nil {
		k.opt.Disk.SaveReply(r)
	}
}

// save makes a point of the sequence as it is. It reports whether there is one now.
func (v *Visit) save(kind memory.Kind, tape bool) bool {
	k := v.k
	base := len(v.now)
	cost := memory.Cost{Bytes: k.opt.PointBytes, Pages: pageIDs(v.seq.Pages())}
	if n := v.seq.TapeLen(); tape && n > 0 {
		base -= n
		cost.Bytes += int64(n) * k.opt.TapeTokenBytes
	}
	prefix, tail := v.now[:base], v.now[base:]
	known := k.index.Has(k.opt.Key, prefix, tail)
	if known != nil && known.In(memory.InMemory) {
		v.saved = len(v.now)
		return true
	}
	claim := v.conversation.Claim()
	ok := k.makeRoom(cost, claim, v.from)
	if !ok && claim == memory.ClaimResumed && kind == memory.KindTurn && k.awaitWrites() {
		ok = k.makeRoom(cost, claim, v.from)
	}
	if !ok {
		k.index.Lose(k.opt.Key, v.now, memory.LostNoRoom)
		k.count(func(c *Counters) { c.Refused++ })
		return false
	}
	state, err := v.seq.Save(tape)
	if err != nil {
		k.opt.Log.Warn("a restore point could not be saved", "error", err.Error())
		return false
	}
	v.saved = len(v.now)
	k.count(func(c *Counters) { c.Saved++ })
	// making room may have evicted it since
	if known != nil && known.In(memory.OnDisk) && len(known.Tail) == 0 && len(tail) == 0 {
		k.index.Hold(known, memory.InMemory, cost)
		k.states[known] = state
		return true
	}
	p := k.index.Add(k.opt.Key, prefix, tail, kind, v.conversation, memory.InMemory, cost)
	k.states[p] = state
	if kind != memory.KindPeriodic { // those are thinned first, when the request ends
		k.store(p, v.now, state)
	}
	return true
}

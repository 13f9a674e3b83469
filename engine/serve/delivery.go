package serve

// accept adds a step's tokens to a reply, up to the one that ends it. What the sequence processed after that one is
// rewound, so that the restore point of the reply's end holds the reply alone.
func (e *Engine) accept(j *job, s step) {
	from, added := len(j.out)-1, 0
	reason, err := FinishReason(""), s.err
	for ; added < len(s.tokens) && reason == "" && err == nil; added++ {
		reason, err = e.add(j, s.tokens[added])
	}
	if unused := len(s.tokens) - added; unused > 0 && err == nil {
		err = j.rewind(unused)
	}
	if processed := j.out[from : len(j.out)-1]; len(processed) > 0 && err == nil {
		e.processed(j, processed)
	}
	switch {
	case err != nil:
		e.logPanic(err, j)
		e.end(j, FinishError, err)
	case reason != "":
		e.end(j, reason, nil)
	}
}

// deliver adds a token that the sequence has not processed yet, and reports whether the reply ended with it.
func (e *Engine) deliver(j *job, token Token) (ended bool) {
	reason, err := e.add(j, token)
	switch {
	case err != nil:
		e.logPanic(err, j)
		e.end(j, FinishError, err)
	case reason != "":
		e.end(j, reason, nil)
	default:
		return false
	}
	return true
}

// add appends a token to the reply and sends it with its text. reason says why the reply ends with it; empty: it goes
// on. Text that comes out only because of the end is left in j.tail.
func (e *Engine) add(j *job, token Token) (reason FinishReason, err error) {
	j.out = append(j.out, token.ID)
	j.usage.CompletionTokens++
	reason, text, err := e.read(j, token.ID)
	switch {
	case err != nil:
		return "", err
	case reason == "":
		j.Entry.note(j, PhaseDecode)
		j.reply.put(Event{Token: &token, Text: text})
		return "", nil
	}
	if !e.ends[token.ID] {
		j.reply.put(Event{Token: &token, Text: text})
		text = ""
	}
	j.tail = text + j.tail
	return reason, nil
}

// read gives the text that became certain with a token, and why the reply ends with it, if it does. What comes out only
// because of the end is left in j.tail.
func (e *Engine) read(j *job, id int32) (reason FinishReason, text string, err error) {
	defer recovered(&err)
	hit := false
	if e.ends[id] {
		reason = FinishStop
	} else {
		text, hit = j.stops.Push(j.Text.Push(id))
		if hit || j.over(text, "") {
			return FinishStop, text, nil
		}
		if len(j.out) >= j.limit {
			reason = FinishLength
		}
	}
	if reason != "" {
		rest, hit := j.stops.Push(j.Text.Flush())
		if hit {
			j.tail = rest
			return FinishStop, text, nil
		}
		j.tail = rest + j.stops.Flush()
		if j.over(j.tail, reason) {
			reason = FinishStop
		}
	}
	return reason, text, nil
}

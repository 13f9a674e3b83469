package memory

import (
	"strings"
	"unicode/utf8"
)

// Turns is how a model's chat format marks an assistant's turn, in ids, and its text.
type Turns struct {
	Header []int32                    // opens an assistant's turn: "<|im_start|>assistant\n"
	End    int32                      // ends it: "<|im_end|>"
	Bytes  func(id int32) []byte      // the text of an id
	Encode func(plain string) []int32 // no special token in it
	// Same reports whether a returned turn says what a streamed one said: equal text but for white space around it,
	// thinking left out where the template would have kept it, tool arguments that are equal as JSON.
	Same func(returned, streamed string) bool
}

// Headers gives where the assistant headers begin, in order.
func (t Turns) Headers(ids []int32) []int {
	var at []int
	for i := 0; i+len(t.Header) <= len(ids); i++ {
		if ids[i] == t.Header[0] && common(ids[i:], t.Header) == len(t.Header) {
			at = append(at, i)
		}
	}
	return at
}

// EndOf gives the position of the end token of the turn whose header begins at at. 0: it has none.
func (t Turns) EndOf(ids []int32, at int) int {
	begin := at + len(t.Header)
	if n := indexOf(ids[begin:], t.End); n >= 0 {
		return begin + n
	}
	return 0
}

// Recall replaces the ids that a returned history was tokenised into by those that were streamed, turn by turn. A reply
// is only used after exactly the prefix that it was streamed after. If the turn says the same, all of its ids are used;
// else those whose text the turn begins with, and the rest stays as it was tokenised. turns counts the replaced turns.
func (t Turns) Recall(ids []int32, replies *Replies) (out []int32, turns int) {
	headers := t.Headers(ids)
	if len(headers) == 0 {
		return ids, 0
	}
	rest := 0 // ids before it are in out
	for _, header := range headers {
		begin := header + len(t.Header)
		length := indexOf(ids[begin:], t.End)
		if length < 0 {
			break // the turn that is to be generated
		}
		out = append(out, ids[rest:begin]...)
		rest = begin
		behind := replies.Behind(HashPrefix(out))
		if len(behind) == 0 {
			continue
		}
		out = append(out, t.recallTurn(ids[begin:begin+length], behind)...)
		rest = begin + length
		turns++
	}
	return append(out, ids[rest:]...), turns
}

func indexOf(ids []int32, id int32) int {
	for i, v := range ids {
		if v == id {
			return i
		}
	}
	return -1
}

// Text joins the ids' bytes.
func (t Turns) Text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(t.Bytes(id))
	}
	return b.String()
}

// recallTurn gives a turn's ids with as many streamed ones as its text allows.
func (t Turns) recallTurn(turn []int32, replies []*Reply) []int32 {
	text := t.Text(turn)
	best, bestCovered := turn, 0
	for i := len(replies) - 1; i >= 0; i-- { // the latest first
		streamed := replies[i].IDs
		whole := t.Text(streamed)
		if whole == text || t.Same(text, whole) {
			return streamed
		}
		n, covered := t.covered(streamed, text)
		if covered > bestCovered {
			best, bestCovered = append(append([]int32(nil), streamed[:n]...), t.from(turn, covered)...), covered
		}
	}
	return best
}

// covered gives the most leading ids that text begins with, ending between two characters, and how many bytes they are.
func (t Turns) covered(ids []int32, text string) (n, bytes int) {
	at := 0
	for i, id := range ids {
		piece := t.Bytes(id)
		if !strings.HasPrefix(text[at:], string(piece)) {
			break
		}
		at += len(piece)
		if at == len(text) || utf8.RuneStart(text[at]) {
			n, bytes = i+1, at
		}
	}
	return n, bytes
}

// from gives ids for turn's text from a byte on, which begins a character: its own ids, but for one that the byte cuts,
// whose rest is tokenised again together with the ids that hold the end of its last character.
func (t Turns) from(turn []int32, from int) []int32 {
	at, k := 0, 0
	for ; k < len(turn) && at+len(t.Bytes(turn[k])) <= from; k++ {
		at += len(t.Bytes(turn[k]))
	}
	if at == from || k == len(turn) {
		return turn[k:]
	}
	piece := string(t.Bytes(turn[k])[from-at:])
	for k++; k < len(turn) && !utf8.ValidString(piece); k++ {
		piece += string(t.Bytes(turn[k]))
	}
	return append(t.Encode(piece), turn[k:]...)
}

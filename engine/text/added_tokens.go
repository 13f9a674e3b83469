package text

import (
	"sort"
	"strings"
)

// addedTokens finds the literal text of added tokens in raw text.
type addedTokens struct {
	byFirst [256][]addedToken // by first byte, longest first
	first   string            // the first bytes, each once
	ids     map[string]int32
}

type addedToken struct {
	text string
	id   int32
}

// newAddedTokens takes the tokens of a file; texts are not empty and differ.
func newAddedTokens(tokens []addedToken) addedTokens {
	a := addedTokens{ids: map[string]int32{}}
	for _, token := range tokens {
		b := token.text[0]
		if len(a.byFirst[b]) == 0 {
			a.first += string([]byte{b})
		}
		a.byFirst[b] = append(a.byFirst[b], token)
		a.ids[token.text] = token.id
	}
	for b := range a.byFirst {
		list := a.byFirst[b]
		sort.SliceStable(list, func(i, j int) bool { return len(list[i].text) > len(list[j].text) })
	}
	return a
}

func (a *addedTokens) id(text string) (int32, bool) {
	id, ok := a.ids[text]
	return id, ok
}

// next gives the first added token in s[at:] that touches no guard: s[start:end] is its text. Of several at one place
// the longest is taken. id is -1 where there is none.
func (a *addedTokens) next(s string, at int, guards []guard) (start, end int, id int32) {
	for at < len(s) {
		skip := a.indexFirst(s[at:])
		if skip < 0 {
			break
		}
		at += skip
		for _, token := range a.byFirst[s[at]] {
			if strings.HasPrefix(s[at:], token.text) && !touches(guards, at, at+len(token.text)) {
				return at, at + len(token.text), token.id
			}
		}
		at++
	}
	return len(s), len(s), -1
}

// indexFirst gives the index of the next byte that begins an added token, or -1.
func (a *addedTokens) indexFirst(s string) int {
	if len(a.first) == 1 {
		return strings.IndexByte(s, a.first[0])
	}
	for i := 0; i < len(s); i++ {
		if len(a.byFirst[s[i]]) > 0 {
			return i
		}
	}
	return -1
}

// touches reports whether [start,end) has a byte in common with one of the sorted, disjoint guards.
func touches(guards []guard, start, end int) bool {
	i := sort.Search(len(guards), func(i int) bool { return guards[i].end > start })
	return i < len(guards) && guards[i].start < end
}

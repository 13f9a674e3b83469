package structured

import "sort"

// trie is a set of texts by their bytes; each ends with a number.
type trie struct {
	bytes []byte  // sorted
	next  []*trie // beside bytes
	end   int     // of the text that ends here; negative: none does
	under []int   // the numbers of all texts that begin so, sorted
}

func newTrie() *trie { return &trie{end: -1} }

func (t *trie) empty() bool { return len(t.under) == 0 }

// add puts a text in. Numbers are added in rising order.
func (t *trie) add(text string, end int) {
	t.under = append(t.under, end)
	if text == "" {
		t.end = end
		return
	}
	i := sort.Search(len(t.bytes), func(i int) bool { return t.bytes[i] >= text[0] })
	if i == len(t.bytes) || t.bytes[i] != text[0] {
		t.bytes = append(t.bytes[:i], append([]byte{text[0]}, t.bytes[i:]...)...)
		t.next = append(t.next[:i], append([]*trie{newTrie()}, t.next[i:]...)...)
	}
	t.next[i].add(text[1:], end)
}

// step gives the texts that go on with b; nil: none does.
func (t *trie) step(b byte) *trie {
	i := sort.Search(len(t.bytes), func(i int) bool { return t.bytes[i] >= b })
	if i == len(t.bytes) || t.bytes[i] != b {
		return nil
	}
	return t.next[i]
}

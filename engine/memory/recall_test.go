package memory

import (
	"slices"
	"strings"
	"testing"
)

// letters is a tokenizer: an id below 256 is a byte, the others are what the table says.
var letters = map[int32]string{1000: "<|im_start|>assistant\n", 1001: "<|im_end|>", 1002: "ab", 1003: "abc", 1004: "cd",
	1005: "<think>", 1006: "é", 1007: "\xc3", 1008: "\xa9d"}

func testTurns() Turns {
	return Turns{
		Header: []int32{1000}, End: 1001,
		Bytes: func(id int32) []byte {
			if s, ok := letters[id]; ok {
				return []byte(s)
			}
			return []byte{byte(id)}
		},
		Encode: func(s string) []int32 {
			var out []int32
			for i := range len(s) {
				out = append(out, int32(s[i]))
			}
			return out
		},
		Same: func(returned, streamed string) bool {
			return strings.TrimSpace(returned) == strings.TrimSpace(streamed)
		},
	}
}

func TestReturnedTextFindsTheIdsThatWereStreamed(t *testing.T) {
	turns := testTurns()
	for _, c := range []struct {
		name           string
		streamed, turn []int32
		want           []int32
	}{
		{"same text, other ids", []int32{'a', 'b', 1004}, []int32{1003, 'd'}, []int32{'a', 'b', 1004}},
		{"white space trimmed", []int32{1002, '\n', '\n'}, []int32{'a', 'b'}, []int32{1002, '\n', '\n'}},
		{"cancelled, part came back", []int32{'a', 'b', 'c', 'x', 'y'}, []int32{1003}, []int32{'a', 'b', 'c'}},
		{"went on by hand inside a returned id", []int32{'a', 'b'}, []int32{1003, 'z'}, []int32{'a', 'b', 'c', 'z'}},
		{"rewritten", []int32{'q'}, []int32{1003}, []int32{1003}},
		{"special id after the cut stays", []int32{'a'}, []int32{1002, 1005}, []int32{'a', 'b', 1005}},
		{"never cut inside a character", []int32{'x', 1007, 'q'}, []int32{'x', 1006, 'q'}, []int32{'x', 1006, 'q'}},
		{"character begun by one returned id and ended by the next", []int32{'x'}, []int32{'x', 1007, 1008},
			[]int32{'x', 1007, 1008}},
	} {
		replies := NewReplies(1 << 20)
		front := []int32{'s', 1000}
		replies.Remember(Reply{HashPrefix(front), c.streamed})
		prompt := slices.Concat(front, c.turn, []int32{1001, 'u', 1000})
		got, _ := turns.Recall(prompt, replies)
		if want := slices.Concat(front, c.want, []int32{1001, 'u', 1000}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, wanted %v", c.name, got, want)
		}
		other := slices.Concat([]int32{'t'}, prompt)
		if got, _ := turns.Recall(other, replies); !slices.Equal(got, other) {
			t.Errorf("%s: a reply was used after another prefix", c.name)
		}
	}
}

func TestLaterTurnsAreLookedUpAfterTheRecalledOnes(t *testing.T) {
	turns, replies := testTurns(), NewReplies(1<<20)
	first := []int32{'s', 1000, 'a', 'b', 1001, 'u', 1000}
	replies.Remember(Reply{HashPrefix(first[:2]), []int32{'a', 'b'}})
	replies.Remember(Reply{HashPrefix(first), []int32{'c', 'd'}})
	got, n := turns.Recall([]int32{'s', 1000, 1002, 1001, 'u', 1000, 1004, 1001, 'v', 1000}, replies)
	if want := slices.Concat(first, []int32{'c', 'd', 1001, 'v', 1000}); n != 2 || !slices.Equal(got, want) {
		t.Fatalf("%d turns: %v", n, got)
	}
}

func TestRepliesKeepTheLatestWithinTheBound(t *testing.T) {
	r := NewReplies(3 * (replyOverhead + 40))
	for i := range int32(5) {
		r.Remember(Reply{HashPrefix([]int32{i}), ids(0, 10)})
	}
	if r.Remember(Reply{HashPrefix([]int32{4}), ids(0, 10)}) || r.Bytes() != 3*(replyOverhead+40) {
		t.Fatalf("%d bytes", r.Bytes())
	}
	if r.Remember(Reply{HashPrefix([]int32{9}), ids(0, 1000)}) {
		t.Fatal("a reply above the bound was taken")
	}
	if len(r.Behind(HashPrefix([]int32{1}))) != 0 || len(r.Behind(HashPrefix([]int32{2}))) != 1 {
		t.Fatal("not the latest three")
	}
}

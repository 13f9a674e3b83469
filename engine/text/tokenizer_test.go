package text

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"slipway/engine/families/qwen35"
)

const pocketFolder = "../../manifests/pocket"

func pocketTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	tokenizer, err := LoadTokenizer(qwen35.Text, filepath.Join(pocketFolder, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// The ids were made by the tokenizers library; testdata/oracle-ids.json is an excerpt of Pocket's reference outputs.
func TestIDsEqualTheReference(t *testing.T) {
	var prompts map[string]struct {
		Text string
		IDs  []int32
	}
	raw, err := os.ReadFile("testdata/oracle-ids.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &prompts); err != nil {
		t.Fatal(err)
	}
	if len(prompts) != 9 {
		t.Fatalf("%d reference prompts, want 9", len(prompts))
	}
	tokenizer := pocketTokenizer(t)
	bos, ok := tokenizer.ID("<|endoftext|>")
	if !ok {
		t.Fatal("no <|endoftext|>")
	}
	for name, want := range prompts {
		text := strings.TrimPrefix(want.Text, "<|endoftext|>")
		got := append([]int32{bos}, tokenizer.Encode(text, EncodeOptions{SpecialTokens: true})...)
		if !slices.Equal(got, want.IDs) {
			t.Errorf("%s: %d ids, want %d; they part at %d", name, len(got), len(want.IDs),
				firstDifference(got, want.IDs))
		}
		if back := tokenizer.Decode(got[1:]); back != norm.NFC.String(text) {
			t.Errorf("%s: decoding gives another text", name)
		}
	}
}

func firstDifference(a, b []int32) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Both ways to merge must agree on every word, short or long.
func TestChainAndScanMergeAlike(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	e := newEncoder(tokenizer)
	random := rand.New(rand.NewPCG(3, 4))
	for round := 0; round < 3000; round++ {
		word := make([]byte, 2+random.IntN(scannedSymbols-2))
		for i := range word {
			word[i] = "etaoinshrdlu the"[random.IntN(16)]
		}
		scanned := slices.Clone(e.merge(string(word)))
		var symbols []int32
		for _, b := range word {
			symbols = append(symbols, tokenizer.byteID[b])
		}
		if chained := e.chain.merge(tokenizer.merges, symbols); !slices.Equal(scanned, chained) {
			t.Fatalf("%q: scanning gives %v, the chain %v", word, scanned, chained)
		}
	}
}

func TestMegabyteOfOneCharacterStaysNearlyLinear(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	const size = 1 << 20
	for _, c := range []string{"a", "=", " ", "é"} {
		e := newEncoder(tokenizer)
		s := strings.Repeat(c, size/len(c))
		ids := e.segment(nil, s)
		if got := tokenizer.Decode(ids); got != s {
			t.Fatalf("%q repeated: decoding gives another text", c)
		}
		if e.chain.steps > 4*size {
			t.Errorf("%q repeated: %d heap steps for %d bytes", c, e.chain.steps, size)
		}
	}
}

func TestAddedTokensFollowTheGuards(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	end, _ := tokenizer.ID("<|im_end|>")
	s := "a<|im_end|>b<|im_end|>"
	if ids := tokenizer.Encode(s, EncodeOptions{}); slices.Contains(ids, end) || tokenizer.Decode(ids) != s {
		t.Errorf("plain text became a control token: %v", ids)
	}
	raw := tokenizer.Encode(s, EncodeOptions{SpecialTokens: true})
	if n := count(raw, end); n != 2 {
		t.Errorf("%d control tokens in a raw prompt, want 2", n)
	}
	guarded := tokenizer.EncodePrompt(Prompt{Text: s, guards: []guard{{1, 11}}})
	if n := count(guarded, end); n != 1 || guarded[len(guarded)-1] != end {
		t.Errorf("%d control tokens beside a guard, want the last one only: %v", n, guarded)
	}
	if got := tokenizer.Decode(guarded); got != s {
		t.Errorf("the guard changed the text: %q", got)
	}
	if !tokenizer.IsControl(end) || !tokenizer.IsSpecial(end) {
		t.Error("<|im_end|> is no control token")
	}
	if think, _ := tokenizer.ID("<think>"); tokenizer.IsControl(think) {
		t.Error("<think> counts as a control token, so the reply parser would not see it")
	}
}

func count(ids []int32, id int32) (n int) {
	for _, i := range ids {
		if i == id {
			n++
		}
	}
	return n
}

func TestStreamNeverGivesHalfACharacter(t *testing.T) {
	tokenizer := pocketTokenizer(t)
	for _, s := range []string{"naïve 中文 😀👩‍👩‍👧 кириллица", "\xff\xfe half \xf0\x9f", "é\u0301"} {
		var ids []int32
		for i := 0; i < len(s); i++ {
			ids = append(ids, tokenizer.byteID[s[i]])
		}
		stream, out := tokenizer.NewStream(), ""
		for _, id := range ids {
			piece := stream.Push(id)
			if !utf8.ValidString(piece) {
				t.Fatalf("%q: the stream gave %q", s, piece)
			}
			out += piece
		}
		out += stream.Flush()
		if out != tokenizer.Decode(ids) {
			t.Errorf("%q: streamed %q, decoded %q", s, out, tokenizer.Decode(ids))
		}
	}
}

func FuzzDecodeGivesTheNormalisedText(f *testing.F) {
	tokenizer := pocketTokenizer(f)
	for _, s := range []string{"", "Hello", "e\u0301", "\r\n\t x", "<|im_end|>", "\xff", "ﬁ 가 각"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ids := tokenizer.Encode(s, EncodeOptions{})
		for _, id := range ids {
			if tokenizer.flag(id)&flagAdded != 0 {
				t.Fatalf("%q gives the added token %d", s, id)
			}
		}
		if want := normalize(s); utf8.ValidString(s) && tokenizer.Decode(ids) != want {
			t.Fatalf("%q comes back as %q", s, tokenizer.Decode(ids))
		}
		tokenizer.Encode(s, EncodeOptions{SpecialTokens: true})
	})
}

func TestUnsupportedTokenizerFilesAreRefused(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(pocketFolder, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	set := func(change func(file map[string]any)) []byte {
		var file map[string]any
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		change(file)
		out, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	model := func(file map[string]any) map[string]any { return file["model"].(map[string]any) }
	pre := func(file map[string]any, i int) map[string]any {
		return file["pre_tokenizer"].(map[string]any)["pretokenizers"].([]any)[i].(map[string]any)
	}
	added := func(file map[string]any, i int) map[string]any {
		return file["added_tokens"].([]any)[i].(map[string]any)
	}
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"not JSON":  {[]byte("<html>"), "invalid character"},
		"truncated": {raw[:len(raw)/2], "unexpected end of JSON"},
		"another model type": {set(func(f map[string]any) { model(f)["type"] = "Unigram" }),
			`model.type: found "Unigram"`},
		"no vocabulary": {set(func(f map[string]any) { model(f)["vocab"] = map[string]any{} }),
			"model.vocab: found no tokens"},
		"a byte without a token": {
			set(func(f map[string]any) { delete(model(f)["vocab"].(map[string]any), "!") }),
			"no token for the byte 0x21"},
		"an id of four thousand million": {
			set(func(f map[string]any) { model(f)["vocab"].(map[string]any)["!"] = 4e9 }), "found 4000000000"},
		"a merge of three": {set(func(f map[string]any) { model(f)["merges"].([]any)[1] = "a b c" }),
			"model.merges[1]"},
		"a merge of unknown tokens": {
			set(func(f map[string]any) { model(f)["merges"].([]any)[0] = []any{"qqqq", "zzzz"} }), "model.merges[0]"},
		"another normaliser": {
			set(func(f map[string]any) { f["normalizer"] = map[string]any{"type": "NFKC"} }),
			`normalizer: found "NFKC"`},
		"Qwen2's pattern": {
			set(func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{"Regex": `\s+`} }),
			"pre_tokenizer.pattern"},
		"a prefix space": {set(func(f map[string]any) { pre(f, 1)["add_prefix_space"] = true }),
			"pre_tokenizer.add_prefix_space"},
		"a second split": {set(func(f map[string]any) { delete(pre(f, 1), "use_regex") }),
			"pre_tokenizer.use_regex"},
		"no pre-tokenizer": {set(func(f map[string]any) { f["pre_tokenizer"] = nil }),
			"pre_tokenizer: found []"},
		"tokens added to every prompt": {
			set(func(f map[string]any) { f["post_processor"] = map[string]any{"type": "TemplateProcessing"} }),
			"post_processor"},
		"an added token that strips": {set(func(f map[string]any) { added(f, 2)["rstrip"] = true }), "added_tokens[2]"},
		"an added id already taken":  {set(func(f map[string]any) { added(f, 1)["id"] = 5 }), "added_tokens[1].id"},
		"an empty added token": {set(func(f map[string]any) { added(f, 0)["content"] = "" }),
			"added_tokens[0].content"},
	} {
		_, err := parseTokenizer(qwen35.Text, "dir/tokenizer.json", c.file)
		var typed *FileError
		if !errors.As(err, &typed) {
			t.Errorf("%s: %v is no FileError", name, err)
		} else if !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "dir/tokenizer.json") {
			t.Errorf("%s: %q does not say %q", name, err, c.says)
		}
	}
	if _, err := parseTokenizer(qwen35.Text, "x", set(func(f map[string]any) {
		merges := model(f)["merges"].([]any)
		for i, m := range merges {
			merges[i] = m.([]any)[0].(string) + " " + m.([]any)[1].(string)
		}
	})); err != nil {
		t.Errorf("merges as strings: %v", err)
	}
}

func BenchmarkEncodeEnglish(b *testing.B) {
	tokenizer := pocketTokenizer(b)
	raw, err := os.ReadFile(filepath.Join(pocketFolder, "training", "haystack.txt"))
	if err != nil {
		b.Fatal(err)
	}
	s := string(raw)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		tokenizer.Encode(s, EncodeOptions{})
	}
}

// Words never seen before: the cost without the cache of words.
func BenchmarkEncodeFreshWords(b *testing.B) {
	tokenizer := pocketTokenizer(b)
	random := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for text.Len() < 1<<20 {
		for range 2 + random.IntN(10) {
			text.WriteByte("etaoinshrdlucmfwyp"[random.IntN(18)])
		}
		text.WriteByte(' ')
	}
	s := text.String()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		newEncoder(tokenizer).segment(nil, s)
	}
}

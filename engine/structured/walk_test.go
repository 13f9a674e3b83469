package structured

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"slipway/engine/sample"
)

// endToken ends replies in these tests.
const endToken = 0

// wordVocabulary has every byte and many pieces of several, among them ones that cross the borders of strings, values
// and characters.
func wordVocabulary(t testing.TB, tokens int) *Vocabulary {
	t.Helper()
	pieces := [][]byte{nil} // endToken
	for b := range 256 {
		pieces = append(pieces, []byte{byte(b)})
	}
	for _, s := range []string{`":`, `": "`, `","`, `", "`, `"}`, `"}]`, `"],`, `{"`, `[{"`, `""`, `\"`, `\n`, `\\`, `\u`, `",\n`,
		"\n\n", "  ", "    ", "\n  ", "true", "false", "null", "12", "0.5", "-1", "1e", "é", "日本", "\xe6\x97", "\xa5x",
		`":{"`, `":[`, `},{"`, `2026-`, `a"`, `b","c":"`, "\xf0\x9f", "\x98\x80\"", `: `, `, `, `" `} {
		pieces = append(pieces, []byte(s))
	}
	r := rand.New(rand.NewPCG(3, 4))
	const letters = "etaoinshrdlucmfwypvbgkjqxz"
	for len(pieces) < tokens {
		word := make([]byte, 0, 12)
		if r.IntN(2) == 0 {
			word = append(word, ' ')
		}
		for range 1 + r.IntN(9) {
			word = append(word, letters[min(r.IntN(26), r.IntN(26))])
		}
		if r.IntN(100) == 0 {
			word = append(word, `",.;{}[]()'`[r.IntN(11)], `":,}]`[r.IntN(5)])
		}
		pieces = append(pieces, word)
	}
	v, err := NewVocabulary(len(pieces), func(id int32) []byte { return pieces[id] })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// schemas of replies that people ask for.
var schemas = []string{
	`{"type":"object"}`,
	`{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":12},"age":{"type":"integer","minimum":0,
	  "maximum":130},"tags":{"type":"array","items":{"enum":["red","green","blue"]},"maxItems":3}},
	  "required":["name","age","tags"],"additionalProperties":false}`,
	`{"type":"object","properties":{"when":{"type":"string","format":"date-time"},"id":{"type":"string","format":"uuid"},
	  "code":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3,5}$"},"note":{"type":["string","null"]}},"required":["when","id"]}`,
	`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"value":{"type":"number","minimum":-5,"maximum":5,
	  "multipleOf":0.25},"left":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"right":{"anyOf":[{"$ref":"#/$defs/tree"},
	  {"type":"null"}]}},"required":["value","left","right"],"additionalProperties":false}}}`,
	`{"anyOf":[{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number","exclusiveMinimum":0}},
	  "required":["kind","r"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"square"},
	  "side":{"type":"integer","exclusiveMaximum":10}},"required":["kind","side"],"additionalProperties":false}]}`,
	`{"type":"array","minItems":2,"maxItems":4,"items":{"type":"string","maxLength":40}}`,
	`{"type":"object","properties":{"a":{"type":"boolean"},"b":true},"additionalProperties":{"type":"integer"}}`,
	`{"type":"string","pattern":"[\"\\\\]"}`,
	`{"type":["integer","string","null"],"minimum":3,"multipleOf":7}`,
}

// Random replies, each token drawn from the mask: every reply that ends is valid by another validator, and no reply
// gets stuck.
func TestEveryReplyThatEndsIsValid(t *testing.T) {
	v := wordVocabulary(t, 3000)
	r := rand.New(rand.NewPCG(1, 2))
	for i, schema := range schemas {
		g, err := Compile(v, json.RawMessage(schema))
		if err != nil {
			t.Fatal(schema, err)
		}
		judge := validator(t, schema)
		ended := 0
		for walk := range 60 {
			reply, whole := randomReply(t, g, r)
			if !whole {
				continue
			}
			ended++
			if problem := invalid(judge, reply); problem != nil {
				t.Fatalf("schema %d, reply %d: %q: %v", i, walk, reply, problem)
			}
		}
		if ended < 10 {
			t.Errorf("schema %d: only %d of 60 replies ended", i, ended)
		}
	}
}

// randomReply draws tokens, with a liking for those that close something.
func randomReply(t *testing.T, g *Grammar, r *rand.Rand) (text []byte, whole bool) {
	t.Helper()
	f := g.Follow([]int32{endToken}, nil)
	var reply []int32
	for range 300 {
		mask := f.Mask(reply)
		var allowed, closing []int32
		for id := range int32(g.vocabulary.tokens) {
			if !mask.Allows(id) {
				continue
			}
			allowed = append(allowed, id)
			if b := g.vocabulary.bytesOf(id); id == endToken || len(b) <= 2 && bytes.ContainsAny(b, `"}]`) {
				closing = append(closing, id)
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("stuck behind %q", text)
		}
		from := allowed
		if len(closing) > 0 && r.IntN(2) == 0 {
			from = closing
		}
		id := from[r.IntN(len(from))]
		if id == endToken {
			return text, true
		}
		reply, text = append(reply, id), append(text, g.vocabulary.bytesOf(id)...)
	}
	return text, false
}

func validator(t *testing.T, schema string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(schema)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("test.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// invalid says what is wrong with a reply; nil: it is JSON, valid, and no object of it has a name twice.
func invalid(judge *jsonschema.Schema, reply []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(reply))
	if err != nil {
		return err
	}
	if err := namesTwice(json.NewDecoder(bytes.NewReader(reply))); err != nil {
		return err
	}
	return judge.Validate(value)
}

func namesTwice(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if seen[name.(string)] {
				return fmt.Errorf("the name %q comes twice", name)
			}
			seen[name.(string)] = true
		}
		if err := namesTwice(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// A mask holds exactly the tokens whose bytes the machine takes: the ways to get there faster leave none out and add
// none.
func TestMasksAreThoseOfTheMachine(t *testing.T) {
	v := wordVocabulary(t, 1200)
	r := rand.New(rand.NewPCG(5, 6))
	compared := 0
	for i, schema := range schemas {
		g, err := Compile(v, json.RawMessage(schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			f := g.Follow([]int32{endToken}, nil)
			var reply []int32
			for range 25 {
				now := f.follow(reply)
				got, want := g.mask(now, f.ends), slowMask(g, now)
				for id := range int32(v.tokens) {
					if got.Allows(id) != want.Allows(id) {
						t.Fatalf("schema %d behind %q: token %q: allowed %v, the machine says %v", i, textOf(v, reply),
							v.bytesOf(id), got.Allows(id), want.Allows(id))
					}
				}
				compared++
				var allowed []int32
				for id := range int32(v.tokens) {
					if id != endToken && want.Allows(id) {
						allowed = append(allowed, id)
					}
				}
				if len(allowed) == 0 {
					break
				}
				reply = append(reply, allowed[r.IntN(len(allowed))])
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d masks were compared", compared)
	}
}

// slowMask takes every token to the machine. Numbers of characters beyond the bound of names in patterns are the same.
func slowMask(g *Grammar, s state) sample.Mask {
	mask := sample.NewMask(g.vocabulary.tokens)
	for id := range int32(g.vocabulary.tokens) {
		now := s
		b := g.vocabulary.bytesOf(id)
		for i := 0; i < len(b) && len(now) > 0; i++ {
			now = now.step(b[i], nil)
		}
		if len(b) > 0 && len(now) > 0 {
			mask.Allow(id)
		}
	}
	if s.complete() {
		mask.Allow(endToken)
	}
	return mask
}

func textOf(v *Vocabulary, reply []int32) (text []byte) {
	for _, id := range reply {
		text = append(text, v.bytesOf(id)...)
	}
	return text
}

// A step of the sampler asks for one mask: at the size of the largest vocabulary, in a string, in a string with a
// pattern, and between two values.
func BenchmarkMask(b *testing.B) {
	v := wordVocabulary(b, 248320)
	for _, c := range []struct{ name, schema, written string }{
		{"string", schemas[1], `{"name":"ab`},
		{"pattern", `{"type":"string","pattern":"^[a-z ]*$"}`, `"ab`},
		{"free text", schemas[0], `{"name":"ab`},
		{"free name", schemas[0], `{"na`},
		{"value", schemas[0], `{"name":`},
		{"number", schemas[1], `{"name":"ab","age":1`},
		{"end of a value", schemas[0], `{"name":"ab"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, err := Compile(v, json.RawMessage(c.schema))
			if err != nil {
				b.Fatal(err)
			}
			now := begin(g.root)
			for i := range len(c.written) {
				now = now.step(c.written[i], nil)
			}
			for b.Loop() {
				g.mask(now, []int32{endToken})
			}
		})
	}
}

package answers

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"slipway/installer/operate"
	"slipway/termtext"
)

// Spelling is how our commands are written in sentences, so that a person can paste them: as this program was started,
// and on the home that is meant. The zero value leaves them as they are.
type Spelling struct {
	Program string // in a shell's words; empty: "slipway"
	Home    string // empty: none was named
}

// named is one of our commands in a sentence.
var named = regexp.MustCompile("(^|[\\s(\"'`])slipway " + `(--help|(?:models (?:list|lock)|cache (?:show|clear)|` +
	`bundle (?:export|import)|check (?:needle|ruler|cache|tools|compare|all)|agent prompt|setup|plan|apply|doctor|up|` +
	`down|status|logs|wait|ask|verify|upgrade|uninstall|connect|models|agent|schema|version|neighbors|restore|gc|` +
	`cache|bundle|measure|check)\b)`)

// homeless are the verbs that are about no home, and groups of verbs.
var homeless = []string{"--help", "agent", "agent prompt", "schema", "version", "models", "cache", "bundle", "check"}

// Sentence writes our commands in a text.
func (sp Spelling) Sentence(text string) string {
	program := sp.Program
	if program == "" {
		program = "slipway"
	}
	if program == "slipway" && sp.Home == "" {
		return text
	}
	var out strings.Builder
	for {
		at := named.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		verb, rest := text[at[4]:at[5]], text[at[5]:]
		out.WriteString(text[:at[3]] + program + " " + verb)
		if sp.Home != "" && !slices.Contains(homeless, verb) && !namesHome(rest) {
			out.WriteString(" --home " + termtext.ShellWords([]string{sp.Home}))
		}
		text = rest
	}
}

// namesHome reports whether the command whose end this is names a home already.
func namesHome(rest string) bool {
	if end := endOfCommand.FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return strings.Contains(rest, "--home")
}

var endOfCommand = regexp.MustCompile("[\n;,)`]|[.] |: ")

// spelled are the fields of documents that hold our own sentences. Texts of models, logs and other programs are in
// others, and stay as they are.
var spelled = map[string]bool{"message": true, "sentence": true, "fix": true, "undo": true, "observed": true,
	"line": true, "refusal": true, "damage": true, "notes": true}

// Document writes our commands in the sentences of a document.
func (sp Spelling) Document(e Envelope) Envelope {
	if e.Data != nil {
		e.Data = sp.value(e.Data)
	}
	if e.Error != nil {
		failed := *e.Error
		failed.Message = sp.Sentence(failed.Message)
		if failed.Details != nil {
			failed.Details = sp.value(failed.Details)
		}
		e.Error = &failed
	}
	return e
}

// value is the JSON of a value with its sentences written anew, or the value itself where none changes.
func (sp Spelling) value(v any) any {
	var encoded bytes.Buffer
	enc := json.NewEncoder(&encoded)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return v // whoever writes the document meets the same error
	}
	data := encoded.Bytes()
	var out bytes.Buffer
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	type level struct {
		key    string // of this object or list in the one around it
		object bool
		next   string // the key whose value comes
		isKey  bool
	}
	stack, copied := []level{{}}, 0
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		end := int(dec.InputOffset())
		top := &stack[len(stack)-1]
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				key := top.key
				if top.object {
					key, top.isKey = top.next, true
				}
				stack = append(stack, level{key: key, object: t == '{', isKey: t == '{'})
			} else {
				stack = stack[:len(stack)-1]
			}
			continue
		case string:
			if top.object && top.isKey {
				top.next, top.isKey = t, false
				continue
			}
			key := top.key
			if top.object {
				key = top.next
			}
			if anew := sp.Sentence(t); spelled[key] && anew != t {
				begin := end - len(quotedAs(data[:end]))
				out.Write(data[copied:begin])
				out.Write(jsonString(anew))
				copied = end
			}
		}
		top.isKey = top.object
	}
	if copied == 0 {
		return v
	}
	out.Write(data[copied:])
	return json.RawMessage(out.Bytes())
}

// quotedAs is the string literal that ends these bytes.
func quotedAs(data []byte) []byte {
	for at := len(data) - 2; at >= 0; at-- {
		if data[at] != '"' {
			continue
		}
		escapes := 0
		for i := at - 1; i >= 0 && data[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 {
			return data[at:]
		}
	}
	return data
}

func jsonString(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("answers: a string that cannot be written: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// spellingOf is how an operator's caller writes commands.
func spellingOf(o *operate.Operator) Spelling {
	sp := Spelling{Home: o.Home}
	if command := o.Caller.Command("version"); len(command) > 0 {
		sp.Program = termtext.ShellWords(command[:len(command)-1])
	}
	return sp
}

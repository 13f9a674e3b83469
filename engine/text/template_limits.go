package text

import (
	"errors"
	"regexp"
	"strings"

	"github.com/ardanlabs/jinja"
)

// A template is as trusted as the weights beside it, but may be wrong: one that calls itself without end would end the
// process with the goroutine's stack, and no error could be caught. So tags that count are put into its source when it
// is compiled: at both ends of a macro, in the body of every loop, and around every output. What they count is bounded
// for each rendering.
const (
	mostTemplateDepth = 200       // macros inside each other
	mostTemplateSteps = 500_000   // rounds of loops and calls of macros
	mostTemplateBytes = 256 << 20 // written, by macros too
)

// Names of what the tags call.
const (
	enterCall  = ourFilter + "enter"
	leaveCall  = ourFilter + "leave"
	stepCall   = ourFilter + "step"
	writeCall  = ourFilter + "written"
	countsInto = ourFilter + "count"
)

var (
	errTemplateDepth = errors.New("the template calls itself more than 200 times inside itself")
	errTemplateSteps = errors.New("the template takes more than 500,000 steps")
	errTemplateBytes = errors.New("the template writes more than 256 MiB")
)

// templateLimits counts one rendering.
type templateLimits struct {
	depth, steps int
	bytes        int64
}

func (l *templateLimits) variables(into map[string]jinja.Value) {
	counting := func(name string, count func(args []jinja.Value) error) {
		into[name] = jinja.NewCallable(name, func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			if err := count(args); err != nil {
				return jinja.Undefined(), err
			}
			switch {
			case len(args) == 0:
				return jinja.NewString(""), nil
			case args[0].IsNone(): // the library writes nothing
				return jinja.NewString("None"), nil
			}
			return args[0], nil
		})
	}
	step := func([]jinja.Value) error {
		if l.steps++; l.steps > mostTemplateSteps {
			return errTemplateSteps
		}
		return nil
	}
	counting(stepCall, step)
	counting(enterCall, func(args []jinja.Value) error {
		if l.depth++; l.depth > mostTemplateDepth {
			return errTemplateDepth
		}
		return step(args)
	})
	counting(leaveCall, func([]jinja.Value) error { l.depth--; return nil })
	counting(writeCall, func(args []jinja.Value) error {
		if len(args) > 0 && args[0].IsString() {
			if l.bytes += int64(len(args[0].AsString())); l.bytes > mostTemplateBytes {
				return errTemplateBytes
			}
		}
		return nil
	})
}

// counted puts the tags that count into a template. Each new tag stands directly behind or before the tag that it is
// for, and has its sign for blanks on the far side, so that the output is the same.
func counted(source string) string {
	var out strings.Builder
	for _, tag := range tagsOf(source) {
		out.WriteString(tag.before)
		inner, opens, closes := tag.inside()
		call := func(name, opens, closes string) string {
			return "{%" + opens + " set " + countsInto + " = " + name + "() " + closes + "%}"
		}
		switch {
		case tag.kind == '{':
			out.WriteString("{{" + opens + " (" + inner + ") | " + writeCall + " " + closes + "}}")
		case tag.kind == '%' && firstWord(inner) == "macro":
			out.WriteString(tag.text + call(enterCall, "", closes))
		case tag.kind == '%' && firstWord(inner) == "endmacro":
			out.WriteString(call(leaveCall, opens, "") + tag.text)
		case tag.kind == '%' && firstWord(inner) == "for":
			out.WriteString(tag.text + call(stepCall, "", closes))
		default:
			out.WriteString(tag.text)
		}
	}
	return out.String()
}

func firstWord(s string) string {
	s = strings.TrimSpace(s)
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return s[:n]
}

// templateTag is one tag of a template with the text before it; the last one may have no tag.
type templateTag struct {
	before string
	kind   byte   // '%', '{' or '#'; 0: none, or a raw block
	text   string // the whole tag
}

// inside gives what is between the braces, and the signs for blanks at both ends.
func (t templateTag) inside() (inner, opens, closes string) {
	if t.kind == 0 {
		return "", "", ""
	}
	inner = t.text[2 : len(t.text)-2]
	if inner != "" && strings.IndexByte("-+", inner[0]) >= 0 {
		opens, inner = inner[:1], inner[1:]
	}
	if n := len(inner); n > 0 && strings.IndexByte("-+", inner[n-1]) >= 0 {
		closes, inner = inner[n-1:], inner[:n-1]
	}
	return inner, opens, closes
}

var (
	rawOpens  = regexp.MustCompile(`^\{%[-+]?\s*raw\s*[-+]?%\}`)
	rawCloses = regexp.MustCompile(`\{%[-+]?\s*endraw\s*[-+]?%\}`)
)

// tagsOf cuts a template at its tags. A tag that does not end, and all behind it, is text.
func tagsOf(source string) (tags []templateTag) {
	from := 0
	for i := 0; i+1 < len(source); {
		kind := source[i+1]
		if source[i] != '{' || strings.IndexByte("%{#", kind) < 0 {
			i++
			continue
		}
		end := tagEnd(source[i:], kind)
		if raw := rawOpens.FindString(source[i:]); raw != "" {
			kind, end = 0, len(source)-i
			if closes := rawCloses.FindStringIndex(source[i:]); closes != nil {
				end = closes[1]
			}
		}
		if end < 0 {
			break
		}
		tags = append(tags, templateTag{source[from:i], kind, source[i : i+end]})
		i += end
		from = i
	}
	return append(tags, templateTag{before: source[from:]})
}

// tagEnd gives the length of the tag at the beginning of s, which strings in it do not end; negative: it does not end.
func tagEnd(s string, kind byte) int {
	closer := map[byte]string{'%': "%}", '{': "}}", '#': "#}"}[kind]
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case kind != '#' && (c == '\'' || c == '"'):
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case strings.HasPrefix(s[i:], closer):
			return i + len(closer)
		}
	}
	return -1
}

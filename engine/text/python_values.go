package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/ardanlabs/jinja"

	"slipway/engine/text/pyjson"
)

// Chat templates are written for Python's jinja2. What of Python's str, repr, float and json.dumps a template can meet
// is here, since the template library's own forms differ (None, 1.0, -0.0, integers beyond 64 bits, U+2028).

// bigInteger marks a callable that represents an integer beyond int64: its name is this and the digits. The library has
// no such integer; a callable is neither string nor mapping nor sequence to a template, as an integer is.
const bigInteger = "integer "

func bigIntegerText(v jinja.Value) (string, bool) {
	if !v.IsCallable() {
		return "", false
	}
	return strings.CutPrefix(v.AsCallable().Name, bigInteger)
}

// templateValue turns a decoded JSON value into a template's, every string through mark.
func templateValue(v any, mark func(string) string) jinja.Value {
	switch v := v.(type) {
	case nil:
		return jinja.None()
	case bool:
		return jinja.NewBool(v)
	case json.Number:
		return templateNumber(string(v))
	case string:
		return jinja.NewString(mark(v))
	case []any:
		items := make([]jinja.Value, len(v))
		for i, item := range v {
			items[i] = templateValue(item, mark)
		}
		return jinja.NewList(items)
	case *pyjson.Object:
		d := jinja.NewDict()
		for _, key := range v.Keys {
			d.AsDict().Set(mark(key), templateValue(v.Values[key], mark))
		}
		return d
	}
	panic("text: templateValue: not a decoded JSON value")
}

func templateNumber(text string) jinja.Value {
	if strings.ContainsAny(text, ".eE") {
		f, _ := strconv.ParseFloat(text, 64) // out of range gives an infinity, as in Python
		return jinja.NewFloat(f)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return jinja.NewCallable(bigInteger+text, func([]jinja.Value, map[string]jinja.Value) (jinja.Value, error) {
			return jinja.Undefined(), errors.New("an integer is not callable")
		})
	}
	return jinja.NewInt(n)
}

// pythonString is str.
func pythonString(v jinja.Value) string {
	switch {
	case v.IsString():
		return v.AsString()
	case v.IsUndefined():
		return ""
	}
	return pythonRepr(v)
}

func pythonRepr(v jinja.Value) string {
	switch {
	case v.IsNone():
		return "None"
	case v.IsFloat():
		return pyjson.Float(v.AsFloat())
	case v.IsString():
		return pythonQuote(v.AsString())
	case v.IsList():
		items := make([]string, v.AsList().Len())
		for i, item := range v.AsList().Items {
			items[i] = pythonRepr(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case v.IsDict():
		d := v.AsDict()
		items := make([]string, 0, d.Len())
		for _, key := range d.Keys {
			items = append(items, pythonQuote(key)+": "+pythonRepr(d.Data[key]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	if digits, ok := bigIntegerText(v); ok {
		return digits
	}
	return v.String()
}

func pythonQuote(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	var out strings.Builder
	out.WriteString(quote)
	for _, r := range s {
		switch {
		case r == '\\' || string(r) == quote:
			out.WriteString(`\` + string(r))
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case unicode.IsPrint(r) || r >= 0x100000: // plane 16: a marker of guards.go must come through
			out.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			fmt.Fprintf(&out, `\U%08x`, r)
		}
	}
	return out.String() + quote
}

// pythonSpace reports what str.strip removes: Unicode's white space, and the four separators of ASCII.
func pythonSpace(r rune) bool {
	return r >= 0x1C && r <= 0x1F || strings.TrimSpace(string(r)) == ""
}

// jsonStyle is json.dumps' arguments.
type jsonStyle struct {
	between, colon string
	indent         string // one level's; used where lines is true
	lines          bool
	sorted         bool
}

var errNoJSON = errors.New("tojson: the value has no JSON form")

// writeJSON is json.dumps(v, ensure_ascii=False).
func writeJSON(out *strings.Builder, v jinja.Value, style jsonStyle, level int) error {
	newline := func(level int) {
		if style.lines {
			out.WriteByte('\n')
			for range level {
				out.WriteString(style.indent)
			}
		}
	}
	switch {
	case v.IsNone():
		out.WriteString("null")
	case v.IsBool():
		out.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		out.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		text := pyjson.Float(v.AsFloat())
		text = strings.Replace(strings.Replace(text, "inf", "Infinity", 1), "nan", "NaN", 1)
		out.WriteString(text)
	case v.IsString():
		pyjson.WriteText(out, v.AsString())
	case v.IsList():
		items := v.AsList().Items
		out.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				out.WriteString(style.between)
			}
			newline(level + 1)
			if err := writeJSON(out, item, style, level+1); err != nil {
				return err
			}
		}
		if len(items) > 0 {
			newline(level)
		}
		out.WriteByte(']')
	case v.IsDict():
		d := v.AsDict()
		keys := d.OrderedKeys()
		if style.sorted {
			sort.Strings(keys)
		}
		out.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				out.WriteString(style.between)
			}
			newline(level + 1)
			pyjson.WriteText(out, key)
			out.WriteString(style.colon)
			if err := writeJSON(out, d.Data[key], style, level+1); err != nil {
				return err
			}
		}
		if len(keys) > 0 {
			newline(level)
		}
		out.WriteByte('}')
	default:
		digits, ok := bigIntegerText(v)
		if !ok {
			return errNoJSON
		}
		out.WriteString(digits)
	}
	return nil
}

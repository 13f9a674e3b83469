package text

import (
	"errors"
	"strings"

	"github.com/ardanlabs/jinja"
)

// The template library looks its own filters up before a caller's. So the filters that must behave as Python's are
// renamed in the source of a template, and given under the new names.
const ourFilter = "python_"

var ourFilters = map[string]func(args []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error){
	"tojson": filterTojson,
	"string": func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		return jinja.NewString(pythonString(args[0])), nil
	},
	"trim": func(args []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error) {
		s := pythonString(args[0])
		chars, given := kwargs["chars"]
		if len(args) > 1 {
			chars, given = args[1], true
		}
		if given && chars.IsString() {
			return jinja.NewString(strings.Trim(s, chars.AsString())), nil
		}
		return jinja.NewString(strings.TrimFunc(s, pythonSpace)), nil
	},
}

func filterTojson(args []jinja.Value, kwargs map[string]jinja.Value) (jinja.Value, error) {
	style := jsonStyle{between: ", ", colon: ": "}
	if indent, ok := kwargs["indent"]; ok {
		switch {
		case indent.IsInt():
			style.lines, style.indent, style.between = true, strings.Repeat(" ", int(min(max(indent.AsInt(), 0), 64))),
				","
		case indent.IsString():
			style.lines, style.indent, style.between = true, indent.AsString(), ","
		}
	}
	if s, ok := kwargs["separators"]; ok && s.IsList() {
		items := s.AsList().Items
		if len(items) != 2 || !items[0].IsString() || !items[1].IsString() {
			return jinja.Undefined(), errors.New("tojson: separators must be two strings")
		}
		style.between, style.colon = items[0].AsString(), items[1].AsString()
	}
	if s, ok := kwargs["sort_keys"]; ok {
		style.sorted = s.IsTruthy()
	}
	var out strings.Builder
	if err := writeJSON(&out, args[0], style, 0); err != nil {
		return jinja.Undefined(), err
	}
	return jinja.NewString(out.String()), nil
}

// renameFilters puts ourFilter before the name of each filter of ourFilters, inside the tags of a template and outside
// of their string literals.
func renameFilters(source string) string {
	var out strings.Builder
	for {
		open := strings.IndexByte(source, '{')
		if open < 0 || open+1 == len(source) {
			out.WriteString(source)
			return out.String()
		}
		closer := ""
		switch source[open+1] {
		case '#':
			closer = "#}"
		case '{':
			closer = "}}"
		case '%':
			closer = "%}"
		default:
			out.WriteString(source[:open+1])
			source = source[open+1:]
			continue
		}
		out.WriteString(source[:open+2])
		source = source[open+2:]
		length := len(source)
		if closer == "#}" {
			if end := strings.Index(source, closer); end >= 0 {
				length = end + len(closer)
			}
			out.WriteString(source[:length])
		} else {
			length = renameInTag(&out, source, closer)
		}
		source = source[length:]
	}
}

// renameInTag copies one tag to its closer and gives its length.
func renameInTag(out *strings.Builder, source, closer string) int {
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case strings.HasPrefix(source[i:], closer):
			out.WriteString(closer)
			return i + len(closer)
		case c == '\'' || c == '"':
			end := i + 1
			for end < len(source) && source[end] != c {
				if source[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(source))
			out.WriteString(source[i:end])
			i = end
		case c == '|':
			name := i + 1
			for name < len(source) && strings.IndexByte(" \t\r\n", source[name]) >= 0 {
				name++
			}
			end := name
			for end < len(source) && isNameByte(source[end]) {
				end++
			}
			out.WriteString(source[i:name])
			if _, ours := ourFilters[source[name:end]]; ours {
				out.WriteString(ourFilter)
			}
			out.WriteString(source[name:end])
			i = end
		default:
			out.WriteByte(c)
			i++
		}
	}
	return len(source)
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// namesIn gives the names in the tags of a template, outside of strings and not after a dot: its variables,
// with the words of the language, filters and keywords among them.
func namesIn(source string) map[string]bool {
	names := map[string]bool{}
	closer := "" // of the current tag; empty outside of tags
	for i := 0; i < len(source); {
		rest := source[i:]
		switch c := rest[0]; {
		case closer == "" && strings.HasPrefix(rest, "{#"):
			end := strings.Index(rest, "#}")
			if end < 0 {
				return names
			}
			i += end + 2
		case closer == "" && (strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "{%")):
			closer = map[byte]string{'{': "}}", '%': "%}"}[rest[1]]
			i += 2
		case closer == "":
			i++
		case strings.HasPrefix(rest, closer):
			closer = ""
			i += 2
		case c == '\'' || c == '"':
			end := 1
			for end < len(rest) && rest[end] != c {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			i += end + 1
		case isNameByte(c):
			end := 1
			for end < len(rest) && isNameByte(rest[end]) {
				end++
			}
			if i == 0 || source[i-1] != '.' {
				names[rest[:end]] = true
			}
			i += end
		default:
			i++
		}
	}
	return names
}

// nestedTooDeep reports brackets nested beyond what any chat template has; the library's parser would follow them down
// until the stack ends.
func nestedTooDeep(source string) bool {
	depth := 0
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '(', '[', '{':
			if depth++; depth > 1000 {
				return true
			}
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return false
}

// reservedNames are the variables that a client's keyword arguments may not take.
var reservedNames = func() map[string]bool {
	reserved := map[string]bool{}
	for _, name := range []string{"messages", "tools", "add_generation_prompt", "namespace", "raise_exception", "range",
		"joiner",
		"dict", "cycler", "strftime_now", "loop", "self", "caller", "true", "false", "none", "True", "False", "None"} {
		reserved[name] = true
	}
	for _, name := range []string{enterCall, leaveCall, stepCall, writeCall, countsInto} {
		reserved[name] = true
	}
	for name := range ourFilters {
		reserved[ourFilter+name] = true
	}
	return reserved
}()

// Package calltest reads replies of the Qwen3.5 family slowly: the whole text at once, every place tried, nothing
// remembered. It is what tests hold the parser to that streams. It is written from the rules alone and shares no code
// with that parser.
package calltest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Tool is a function that may be called.
type Tool struct {
	Name     string
	Types    map[string]string // of its parameters: "string", "integer" or "object"
	Required []string
}

// Said is what a reply says.
type Said struct {
	Reasoning, Content string
	Calls              []Call
}

// Call is one call. Arguments are as encoding/json gives them, numbers as json.Number.
type Call struct {
	Name      string
	Arguments map[string]any
}

var (
	thinkBegins = regexp.MustCompile(`^[ \t\r\n]*<think>`)
	thinkEnds   = regexp.MustCompile(`^[ \t\r\n]*</think>`)
	opening     = regexp.MustCompile(
		`<tool_call>[ \t\r\n]*(<function=|\{|$|<($|f$|fu$|fun$|func$|funct$|functi$|functio$|function$))` +
			`|<function=`)
	anyTag    = regexp.MustCompile(`<tool_call>|</tool_call>|<function=|</function>|<parameter=|</parameter(=|>)`)
	named     = regexp.MustCompile(`^([^<>\n]{0,256})(>|\n)`)
	fenceLine = regexp.MustCompile("^\\s*(```+|~~~+)")
)

// Read reads a reply. thinking: it begins inside the model's thinking. cut: the model did not end it.
func Read(reply string, tools []Tool, thinking, cut bool) (said Said) {
	reasoning := thinking
	for {
		for thinkBegins.MatchString(reply) || !reasoning && thinkEnds.MatchString(reply) {
			if reasoning = thinkBegins.MatchString(reply); reasoning {
				reply = reply[thinkBegins.FindStringIndex(reply)[1]:]
			} else {
				reply = reply[thinkEnds.FindStringIndex(reply)[1]:]
			}
		}
		if !reasoning {
			break
		}
		thought, rest, ended := strings.Cut(reply, "</think>")
		if !ended {
			reply = strings.TrimLeft(reply, "\n")
			break
		}
		said.Reasoning += strings.Trim(thought, "\n")
		reply, reasoning = rest, false
	}
	text := func(s string) {
		if reasoning {
			said.Reasoning += s
		} else {
			said.Content += s
		}
	}
	at := openingIn(reply)
	if at < 0 {
		text(reply)
	} else {
		readings := blocks(reply[at:], tools, cut)
		switch {
		case len(readings) == 1:
			text(trimEnd(reply[:at]))
			reasoning = false
			said.Calls = readings[0].calls
			text(trimStart(readings[0].prose))
		case cut:
			text(trimEnd(reply[:at]))
		default:
			text(reply)
		}
	}
	for strings.Contains(said.Content, "</think>") {
		said.Content = strings.Replace(said.Content, "</think>", "", 1)
	}
	said.Reasoning, said.Content = strings.TrimSpace(said.Reasoning), strings.TrimSpace(said.Content)
	return said
}

// trimEnd takes the newlines off the end of a text, those in front of a stray tag too.
func trimEnd(s string) string {
	for {
		shorter := strings.TrimSuffix(strings.TrimRight(s, "\n"), "</think>")
		if shorter == s {
			return s
		}
		s = shorter
	}
}

// trimStart takes the newlines off the beginning of a text.
func trimStart(s string) string {
	for {
		shorter := strings.TrimPrefix(strings.TrimLeft(s, "\n"), "</think>")
		if shorter == s {
			return s
		}
		s = shorter
	}
}

// openingIn gives where what may be a call begins; -1: nowhere.
func openingIn(section string) int {
	for _, at := range opening.FindAllStringIndex(section, -1) {
		if section[at[0]:at[0]+2] == "<t" {
			return at[0]
		}
		lines := strings.Split(section[:at[0]], "\n")
		fence := ""
		for _, line := range lines[:len(lines)-1] {
			m := fenceLine.FindStringSubmatch(line)
			line = strings.TrimSpace(line)
			switch {
			case m == nil:
			case fence == "" && (m[1][0] == '~' || !strings.Contains(line[len(m[1]):], "`")):
				fence = m[1]
			case fence != "" && line == m[1] && strings.HasPrefix(line, fence):
				fence = ""
			}
		}
		if lines[len(lines)-1] == "" && fence == "" {
			return at[0]
		}
	}
	return -1
}

type reading struct {
	calls []Call
	prose string
}

// blocks gives every reading of a text that begins with an opening.
func blocks(text string, tools []Tool, cut bool) []reading {
	var all []reading
	keep := func(calls []Call, prose string) {
		if anyTag.MatchString(prose) || cut && strings.TrimSpace(prose) != "" {
			return
		}
		for _, other := range all {
			if same(other.calls, calls) && other.prose == prose {
				return
			}
		}
		all = append(all, reading{slices.Clone(calls), prose})
	}
	bare := !strings.HasPrefix(text, "<tool_call>")
	var block, function, behindFunction, behindBlock func(s string, calls []Call)
	block = func(s string, calls []Call) {
		s = strings.TrimLeft(s, " \t\r\n")
		if strings.HasPrefix(s, "{") {
			if c, rest, ok := jsonCall(s, tools); ok {
				if after, ok := strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), "</tool_call>"); ok {
					behindBlock(after, append(calls, c))
				} else if strings.TrimSpace(rest) == "" && !cut {
					keep(append(calls, c), rest)
				}
			}
			return
		}
		function(s, calls)
	}
	function = func(s string, calls []Call) {
		s = strings.TrimLeft(s, " \t\r\n")
		name, rest, ok := cutName(s, "<function=")
		for _, tool := range tools {
			if ok && tool.Name == name {
				members(rest, tool, map[string]any{}, func(arguments map[string]any, tag, rest string) {
					longer := append(slices.Clone(calls), Call{name, arguments})
					if tag == "</function>" {
						behindFunction(rest, longer)
					} else {
						behindBlock(rest, longer)
					}
				})
			}
		}
	}
	behindFunction = func(s string, calls []Call) {
		next := strings.TrimLeft(s, " \t\r\n")
		if after, ok := strings.CutPrefix(next, "</tool_call>"); ok {
			behindBlock(after, calls)
			return
		}
		if after, ok := strings.CutPrefix(next, "<tool_call>"); ok {
			block(after, calls)
		} else if strings.HasPrefix(next, "<function=") {
			function(next, calls)
		} else if !cut || bare {
			keep(calls, s)
		}
	}
	behindBlock = func(s string, calls []Call) {
		next := strings.TrimLeft(s, " \t\r\n")
		if after, ok := strings.CutPrefix(next, "<tool_call>"); ok {
			block(after, calls)
		} else if strings.HasPrefix(next, "<function=") {
			function(next, calls)
		} else {
			keep(calls, s)
		}
	}
	if bare {
		function(text, nil)
	} else {
		block(strings.TrimPrefix(text, "<tool_call>"), nil)
	}
	return all
}

// members reads parameters and the end of a function in every way.
func members(s string, tool Tool, before map[string]any, found func(map[string]any, string, string)) {
	s = strings.TrimLeft(s, " \t\r\n")
	for _, tag := range []string{"</function>", "</tool_call>"} {
		if rest, ok := strings.CutPrefix(s, tag); ok {
			for _, name := range tool.Required {
				if _, there := before[name]; !there {
					return
				}
			}
			found(before, tag, rest)
			return
		}
	}
	name, value, ok := cutName(s, "<parameter=")
	kind, known := tool.Types[name]
	if !ok || !known {
		return
	}
	try := func(raw, rest string) {
		v := valueOf(raw, kind)
		if old, twice := before[name]; twice && !sameJSON(old, v) {
			return
		}
		longer := map[string]any{name: v}
		for k, old := range before {
			longer[k] = old
		}
		members(rest, tool, longer, found)
	}
	isEnd := func(s string) bool {
		s = strings.TrimLeft(s, " \t\r\n")
		next, _, ok := cutName(s, "<parameter=")
		_, known := tool.Types[next]
		return ok && known || strings.HasPrefix(s, "</function>") || strings.HasPrefix(s, "</tool_call>")
	}
	if kind != "string" {
		d := json.NewDecoder(strings.NewReader(value))
		var whole json.RawMessage
		if d.Decode(&whole) == nil {
			raw, rest := value[:d.InputOffset()], value[d.InputOffset():]
			if rest, ok := cutEnd(strings.TrimLeft(rest, " \t\r\n"), name); ok {
				if isEnd(rest) {
					try(raw, rest)
				}
				return
			}
		}
	}
	if at := anyTag.FindStringIndex(value); at != nil { // an end that is missing
		next, _, ok := cutName(value[at[0]:], "<parameter=")
		if _, known := tool.Types[next]; ok && known || strings.HasPrefix(value[at[0]:], "</function>") {
			raw := value[:at[0]]
			if own, ok := strings.CutSuffix(strings.TrimRight(raw, " \t\r\n"), "</"+name+">"); ok &&
				!strings.Contains(own, "<"+name) {
				raw = own
			}
			try(raw, value[at[0]:])
		}
	}
	for at := range value {
		if rest, ok := cutEnd(value[at:], name); ok && tagAt(value, at) && isEnd(rest) && !swallows(value[:at]) {
			try(value[:at], rest)
		}
	}
}

// tagAt reports whether the tag at a place is one of its own, not part of another one's name.
func tagAt(s string, at int) bool { return slices.Contains(tagsOf(s), at) }

// tagsOf gives where the tags of a text begin.
func tagsOf(s string) (places []int) {
	for from := 0; ; {
		at := anyTag.FindStringIndex(s[from:])
		if at == nil {
			return places
		}
		places = append(places, from+at[0])
		from += at[1]
		if name := named.FindString(s[from:]); s[from-1] == '=' && name != "" {
			from += len(strings.TrimSuffix(name, "\n"))
		}
	}
}

// swallows reports whether a value leaves a tag open that begins one of its lines.
func swallows(value string) bool {
	var open []string // the tag, with a newline in front where it begins a line
	for _, at := range tagsOf(value) {
		tag := anyTag.FindString(value[at:])
		closes := map[string]string{"</tool_call>": "<tool_call>", "</function>": "<function=",
			"</parameter>": "<parameter=", "</parameter=": "<parameter="}[tag]
		if closes == "" {
			line := value[strings.LastIndex(value[:at], "\n")+1 : at]
			if strings.Trim(line, " \t") == "" {
				tag = "\n" + tag
			}
			open = append(open, tag)
			continue
		}
		for i := len(open) - 1; i >= 0; i-- {
			if strings.TrimPrefix(open[i], "\n") == closes {
				open = slices.Delete(open, i, i+1)
				break
			}
		}
	}
	return slices.ContainsFunc(open, func(tag string) bool { return tag[0] == '\n' })
}

func cutName(s, tag string) (name, rest string, ok bool) {
	s, found := strings.CutPrefix(s, tag)
	m := named.FindStringSubmatch(s)
	if !found || m == nil {
		return "", "", false
	}
	name = strings.TrimSpace(m[1])
	for _, quote := range []string{`"`, "'"} {
		if len(name) > 1 && strings.HasPrefix(name, quote) && strings.HasSuffix(name, quote) {
			name = strings.TrimSpace(name[1 : len(name)-1])
			break
		}
	}
	return name, s[len(strings.TrimSuffix(m[0], "\n")):], true
}

// cutEnd cuts the end of a parameter off the beginning of s.
func cutEnd(s, name string) (rest string, ok bool) {
	if rest, ok := strings.CutPrefix(s, "</parameter>"); ok {
		return rest, true
	}
	own, rest, ok := cutName(s, "</parameter=")
	return rest, ok && own == name
}

func valueOf(raw, kind string) any {
	raw = strings.TrimSuffix(strings.TrimPrefix(raw, "\n"), "\n")
	trimmed := strings.TrimSpace(raw)
	var v any
	switch {
	case raw == "null" || kind != "string" && trimmed == "null":
		return nil
	case kind == "integer" && regexp.MustCompile(`^[-+]?\d+(\.0+)?$`).MatchString(trimmed):
		whole, _, _ := strings.Cut(trimmed, ".")
		sign, digits := "", strings.TrimLeft(whole, "+-")
		if whole[0] == '-' {
			sign = "-"
		}
		if digits = strings.TrimLeft(digits, "0"); digits == "" {
			return json.Number("0")
		}
		return json.Number(sign + digits)
	case kind == "object" && strings.HasPrefix(trimmed, "{"):
		d := json.NewDecoder(strings.NewReader(trimmed))
		d.UseNumber()
		if json.Valid([]byte(trimmed)) && d.Decode(&v) == nil {
			return v
		}
	}
	return raw
}

// jsonCall reads {"name": …, "arguments": {…}} from the beginning of s.
func jsonCall(s string, tools []Tool) (c Call, rest string, ok bool) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var members map[string]any
	if d.Decode(&members) != nil {
		return c, "", false
	}
	rest = s[d.InputOffset():]
	c.Name, _ = members["name"].(string)
	c.Arguments = map[string]any{}
	if given, there := members["arguments"]; there {
		if c.Arguments, ok = given.(map[string]any); !ok {
			return c, "", false
		}
	}
	for _, tool := range tools {
		if tool.Name != c.Name {
			continue
		}
		for name := range c.Arguments {
			if _, known := tool.Types[name]; !known {
				return c, "", false
			}
		}
		for _, name := range tool.Required {
			if _, there := c.Arguments[name]; !there {
				return c, "", false
			}
		}
		return c, rest, true
	}
	return c, "", false
}

func same(a, b []Call) bool {
	return slices.EqualFunc(a, b, func(x, y Call) bool {
		return x.Name == y.Name && sameJSON(x.Arguments, y.Arguments)
	})
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

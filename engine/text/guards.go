package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A person may write "<|im_end|>" and mean the ten characters. Before a template sees a person's string, a marker (a
// private-use character that occurs in no string of the conversation and not in the template) is put after the first
// character of every such literal. After rendering the markers are taken out again and their places become the guards
// of the [Prompt]: no added token is recognised over one. A string without such a literal, the common case, is not
// touched.
//
// A literal that a string ends in the middle of is marked too, since a template may complete it ("<parameter=" + name +
// ">").
//
// Two literals are left to the template: <think> and </think> in the content of an assistant turn without
// reasoning_content, which templates look for and split at.
//
// Templates also ask whether a person's text begins with one literal and ends with another, <tool_response>. Those two
// places get markers of their own, outside of the literal: the template sees the text, and the guard is the same.

// marker finds and marks the literals of added tokens.
type marker struct {
	literals []string
	first    [256]bool // bytes that literals begin with
	rune     string    // the marker; empty until choose found that one is needed
	// as rune is, behind a literal that begins a text and before one that ends it
	behind, before string
}

func newMarker(literals []string) *marker {
	m := &marker{literals: literals}
	for _, literal := range literals {
		m.first[literal[0]] = true
	}
	return m
}

// needs reports whether s holds a literal, whole or begun at its end.
func (m *marker) needs(s string) bool {
	return m.next(s, 0, nil) >= 0
}

// next gives the first place at or after from where a literal begins that is not in except; -1 for none.
func (m *marker) next(s string, from int, except []string) int {
	for i := from; i < len(s); i++ {
		if !m.first[s[i]] {
			continue
		}
		rest := s[i:]
		for _, literal := range m.literals {
			if strings.HasPrefix(rest, literal) && !slices.Contains(except, literal) || len(rest) < len(literal) &&
				strings.HasPrefix(literal, rest) {
				return i
			}
		}
	}
	return -1
}

// choose picks the marker, a character of plane 16 that is in no string of everywhere, where a string of people needs
// it.
func (m *marker) choose(everywhere, people func(visit func(string))) {
	needed := false
	people(func(s string) { needed = needed || m.needs(s) })
	if !needed {
		return
	}
	taken := map[rune]bool{}
	everywhere(func(s string) {
		for i := 0; i < len(s); i++ {
			if s[i] == 0xF4 { // first byte of every character of plane 16
				r, _ := utf8.DecodeRuneInString(s[i:])
				taken[r] = true
			}
		}
	})
	free := []*string{&m.rune, &m.behind, &m.before}
	for r := rune(0x100000); r <= 0x10FFFD && len(free) > 0; r++ {
		if !taken[r] {
			*free[0], free = string(r), free[1:]
		}
	}
}

// markFramed is mark of a text that one literal may begin and another end, blanks aside: that stays to be seen.
func (m *marker) markFramed(s, opens, closes string) string {
	text := strings.TrimSpace(s)
	if m.before == "" || len(text) < len(opens)+len(closes) || !strings.HasPrefix(text, opens) ||
		!strings.HasSuffix(text, closes) {
		return m.mark(s)
	}
	begins := strings.Index(s, opens)
	ends := strings.LastIndex(s, closes)
	return s[:begins] + opens + m.behind + m.mark(s[begins+len(opens):ends]) + m.before + s[ends:]
}

// mark puts the marker into s.
func (m *marker) mark(s string, except ...string) string {
	if m.rune == "" {
		return s
	}
	at := m.next(s, 0, except)
	if at < 0 {
		return s
	}
	var out strings.Builder
	from := 0
	for ; at >= 0; at = m.next(s, from, except) {
		_, size := utf8.DecodeRuneInString(s[at:])
		out.WriteString(s[from : at+size])
		out.WriteString(m.rune)
		from = at + size
	}
	out.WriteString(s[from:])
	return out.String()
}

// prompt takes the markers out of what a template rendered. A guard is the first character of a marked literal: that is
// enough to keep the literal from being a token, and no token ends in the middle of it.
func (m *marker) prompt(rendered string) Prompt {
	if m.rune == "" || !strings.ContainsAny(rendered, m.rune+m.behind+m.before) {
		return Prompt{Text: rendered}
	}
	var p Prompt
	out := make([]byte, 0, len(rendered))
	for {
		at := strings.IndexAny(rendered, m.rune+m.behind+m.before)
		if at < 0 {
			break
		}
		out = append(out, rendered[:at]...)
		_, length := utf8.DecodeRuneInString(rendered[at:])
		kind := rendered[at : at+length]
		rendered = rendered[at+length:]
		// the last character, which is of the literal; behind a literal any character of it will do, and before one
		// its first
		_, size := utf8.DecodeLastRune(out)
		g := guard{len(out) - size, len(out)}
		if kind == m.before {
			_, size = utf8.DecodeRuneInString(rendered)
			g = guard{len(out), len(out) + size}
		}
		if size > 0 && (len(p.guards) == 0 || p.guards[len(p.guards)-1].end <= g.start) {
			p.guards = append(p.guards, g)
		}
	}
	p.Text = string(append(out, rendered...))
	return p
}

// clean takes the markers out of an error's words.
func (m *marker) clean(s string) string {
	if m.rune == "" {
		return s
	}
	return strings.NewReplacer(m.rune, "", m.behind, "", m.before, "").Replace(s)
}
